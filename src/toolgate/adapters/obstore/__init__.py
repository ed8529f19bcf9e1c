"""Blobs in files and in S3, through the library `obstore`."""

from toolgate.adapters.obstore.blobs import ObstoreBlobs, file_blobs, s3_blobs

__all__ = ["ObstoreBlobs", "file_blobs", "s3_blobs"]

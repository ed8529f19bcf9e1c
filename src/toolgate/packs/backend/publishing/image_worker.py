"""Makes a JPEG of an image, as a process of its own: `python image_worker.py`, image on stdin.

What a stranger's file makes of a decoder stays in here: the process may take so much memory and
time and no more, and is killed where it does. It imports nothing of toolgate. What it writes:
`ok` and a line end, then the JPEG; or one sentence.
"""

import io
import sys

MAX_EDGE = 2048
QUALITY = 80
MAX_PIXELS = 50_000_000
MEMORY_BYTES = 1024 * 1024 * 1024
CPU_SECONDS = 20
FORMATS = ("JPEG", "PNG", "GIF", "WEBP")
MAX_PROFILE = 64 * 1024
OK = b"ok\n"


class Unusable(Exception):
    """The image cannot be used; the message says why."""


def limit_process() -> None:
    """Let the system end this process where it takes too much."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def jpeg_of(data: bytes) -> bytes:
    """The image as JPEG, upright, no edge longer than `MAX_EDGE`, without metadata."""
    from PIL import Image, ImageOps  # noqa: PLC0415

    Image.MAX_IMAGE_PIXELS = None  # ours counts, and raises before anything is unpacked
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except Exception:
        raise Unusable(f"is not a {', '.join(FORMATS[:-1])} or {FORMATS[-1]} image") from None
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise Unusable(f"has {width} × {height} pixels; at most {MAX_PIXELS:,} are possible")
    try:
        image.draft("RGB", (MAX_EDGE, MAX_EDGE))
        image.load()
        image = ImageOps.exif_transpose(image)
        profile = image.info.get("icc_profile") if image.mode == "RGB" else None
        image.thumbnail((MAX_EDGE, MAX_EDGE), Image.Resampling.LANCZOS, reducing_gap=3.0)
        if image.has_transparency_data:
            image = image.convert("RGBA")
            ground = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(ground, image)
        made = io.BytesIO()
        if profile is not None and len(profile) > MAX_PROFILE:
            profile = None
        image.convert("RGB").save(
            made, "JPEG", quality=QUALITY, optimize=True, icc_profile=profile, exif=b""
        )
    except MemoryError:
        raise Unusable("needs too much memory to be read") from None
    except Exception:
        raise Unusable("is damaged") from None
    return made.getvalue()


def main() -> None:
    """Read, convert, write."""
    limit_process()
    try:
        answer = OK + jpeg_of(sys.stdin.buffer.read())
    except Unusable as problem:
        answer = str(problem).encode()
    sys.stdout.buffer.write(answer)


if __name__ == "__main__":
    main()

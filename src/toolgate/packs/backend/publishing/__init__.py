"""Posts: files with front matter, and images, in a Git repository."""

"""The programs inside the images, and the build of images without a registry."""

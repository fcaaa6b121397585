"""The programs in the images, and those that build images without an image registry."""

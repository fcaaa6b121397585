"""Scripts for maintainers: generate pages, follow pages, read the rows of docs/kips.md."""

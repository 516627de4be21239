"""Building: capture what is missing, write the pages, make the site."""

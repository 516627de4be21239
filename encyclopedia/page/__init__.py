"""A family's pages: from facts to HTML and Markdown. Knows neither torch nor the site engine."""

"""Pages: from facts to HTML fragments. Knows neither torch nor the site engine."""

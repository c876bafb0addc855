"""Our networks in other people's tools, a file per tool."""

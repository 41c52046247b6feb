"""What a fit returns: surrogates, their errors, indices and files."""

"""Tables, figures and the static report site, from stored measurements."""

"""Whether everything that runs need is there: looked at now, one finding each, with what to do about it."""

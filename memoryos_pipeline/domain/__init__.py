"""Pure rules of memory: values in, values out, standard library only."""

"""Language models and embedders behind two small protocols."""

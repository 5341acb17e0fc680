"""The scripts of the tables, and what they share."""

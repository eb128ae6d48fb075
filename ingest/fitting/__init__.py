"""What fitting adds up while parallel text goes by: bounded memory, whatever the number of pairs."""

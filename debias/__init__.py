"""The science: language vectors, encoders, detection and debiasing; arrays in, arrays out, and no cluster."""

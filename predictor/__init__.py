"""From a model file to a prediction: headers, shapes, ledger, roofline."""

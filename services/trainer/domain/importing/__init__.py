"""Reading other people's question files and captions (TRN-1). Pure: bytes in, values and faults out."""

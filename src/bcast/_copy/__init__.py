"""The copy core: contiguous bytes along an alignment or by counts, and strided data made contiguous."""

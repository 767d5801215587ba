"""The copy core: it copies contiguous bytes along an alignment or by counts, and makes strided data contiguous."""

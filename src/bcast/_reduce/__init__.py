"""The core of reductions: from the axes of an array to sums, extremes, truths and products along some of them."""

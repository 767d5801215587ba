#ifndef BCAST_FUNCTIONS_H
#define BCAST_FUNCTIONS_H

/* Numbers of functions, by which tables of loops are read. The first six have loops row by row, the first twelve for
   floats of 16 bits; all but comparisons can be steps of a fused loop. */
enum {
    bcast_number_add, bcast_number_subtract, bcast_number_multiply, bcast_number_divide, bcast_number_maximum,
    bcast_number_minimum, bcast_number_equal, bcast_number_not_equal, bcast_number_less, bcast_number_less_equal,
    bcast_number_greater, bcast_number_greater_equal, bcast_number_rint, bcast_number_at_least, bcast_number_at_most
};

#endif

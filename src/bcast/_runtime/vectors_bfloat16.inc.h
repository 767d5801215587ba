/* Floats rounded to bfloat16, like `bcast_bf16_bits_of_f32`, on targets that have `Words`. */

BCAST_INLINE Halves rounded_to_bfloat16(Floats x)
{
    const Words bits = bits_of(x);
    const Words top = upper_halves(bits);
    const Words is_odd = common_bits(top, repeated_word(1));
    const Words above = sum_of_words(sum_of_words(bits, is_odd), repeated_word(0x7fff));
    const Words sign = common_bits(top, repeated_word(0x8000));
    const Words nan = all_bits(sign, repeated_word(0x7fc0));

    return narrowed(choose(compare<ordered>(x, x), upper_halves(above), nan));
}

/* In place of `choices.inc.h`: plans use this target's fused loops only for arithmetic. */

constexpr bool has_choices = false;

template <int count>
BCAST_INLINE void apply_choice(Floats (&)[count], int, const float *, bool) {}

/* In place of `choices.inc.h`: plans have this target's fused loops do arithmetic alone. */

constexpr bool has_choices = false;

template <int count>
BCAST_INLINE void apply_choice(Floats (&)[count], int, const float *, bool) {}

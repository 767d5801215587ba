/* The tables of a target's conversions, generated from the list of kinds. Included after all conversions. */

/* Complex numbers only become complex numbers. */
template <Kind from, Kind to>
constexpr bcast_cast cast()
{
    if constexpr (from == other || to == other) return nullptr;
    else if constexpr (is_complex(from) && !is_complex(to)) return nullptr;
    else if constexpr (is_complex(from) && from == to) return nullptr;
    else return Cast<from, to>::loop;
}

template <Kind from, Kind... to> constexpr CastRow casts_from(Kinds<to...>) { return {{cast<from, to>()...}}; }
template <Kind... from> constexpr CastTable casts_of(Kinds<from...> all) { return {{casts_from<from>(all)...}}; }
constexpr CastTable casts = casts_of(AllKinds{});

template <Kind from, Kind... to>
constexpr CastRow saturating_casts_from(Kinds<to...>) { return {{saturating_cast<from, to>()...}}; }
template <Kind... from>
constexpr CastTable saturating_casts_of(Kinds<from...> all) { return {{saturating_casts_from<from>(all)...}}; }
constexpr CastTable saturating_casts = saturating_casts_of(AllKinds{});

//! The built-in functions that a policy may call: what answers the same for the same arguments, in a time that its
//! arguments bound.
//!
//! Not among them: what reaches the world (`http.send`, `opa.runtime`), reads a clock or chance (`time.now_ns`,
//! `rand.intn`, `uuid.rfc4122`), prints, or makes much of little (`numbers.range`, `net.cidr_expand`, `bits.lsh`).

/// All of them.
const OFFERED: [&str; 80] = [
    "abs",
    "array.concat",
    "array.reverse",
    "array.slice",
    "bits.and",
    "bits.negate",
    "bits.or",
    "bits.rsh",
    "bits.xor",
    "ceil",
    "concat",
    "contains",
    "count",
    "endswith",
    "floor",
    "format_int",
    "indexof",
    "indexof_n",
    "intersection",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "json.is_valid",
    "json.marshal",
    "json.unmarshal",
    "lower",
    "max",
    "min",
    "net.cidr_contains",
    "net.cidr_is_valid",
    "object.filter",
    "object.get",
    "object.keys",
    "object.remove",
    "object.subset",
    "object.union",
    "product",
    "regex.find_n",
    "regex.is_valid",
    "regex.match",
    "regex.split",
    "replace",
    "round",
    "sort",
    "split",
    "sprintf",
    "startswith",
    "strings.any_prefix_match",
    "strings.any_suffix_match",
    "strings.count",
    "strings.reverse",
    "substring",
    "sum",
    "time.add_date",
    "time.clock",
    "time.date",
    "time.diff",
    "time.format",
    "time.parse_duration_ns",
    "time.parse_ns",
    "time.parse_rfc3339_ns",
    "time.weekday",
    "to_number",
    "trim",
    "trim_left",
    "trim_prefix",
    "trim_right",
    "trim_space",
    "trim_suffix",
    "type_name",
    "union",
    "units.parse",
    "units.parse_bytes",
    "upper",
    "__builtin_sets.intersection",
    "__builtin_sets.union",
];

/// What is wrong with calling a function; `None` when nothing is.
pub(super) fn fault(name: &str) -> Option<String> {
    if OFFERED.contains(&name) {
        return None;
    }
    Some(match name {
        "time.now_ns" => "time.now_ns is not offered: write input.time_ns".to_owned(),
        "http.send" | "opa.runtime" => {
            format!("{name} is not offered: a policy sees its input and nothing else")
        }
        _ => format!("the function {name} is not offered"),
    })
}

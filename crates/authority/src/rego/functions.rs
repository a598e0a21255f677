//! The built-in functions that a policy may call: what answers the same for the same arguments, each with its cost.
//!
//! The interpreter asks for functions of its host before its own, so each is one of ours under its name: it takes
//! what its arguments will cost, and then calls the library's, or looks for a regular expression (`regular`).
//! Invariant: a function that is offered has a cost, since it stands in [`OFFERED`] with it. One that panics fails.
//! Not among them: what reaches the world (`http.send`, `opa.runtime`), reads a clock or chance (`time.now_ns`,
//! `rand.intn`, `uuid.rfc4122`), prints, or makes much of little (`numbers.range`, `net.cidr_expand`, `bits.lsh`).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use regorus::unstable::{BUILTINS, Expr, NodeRef, Source, Span};
use regorus::{Engine, Value};

use super::cost::{self, CostOf};
use super::meter::{self, Spent};
use super::regular::{self, Patterns};
use super::watched;

/// What stands behind a name.
#[derive(Clone, Copy)]
enum Work {
    /// The library's function, at a cost.
    Library(CostOf),
    /// Ours.
    Own(fn(&Patterns, &[Value]) -> Result<Value, Failed>),
}

use Work::{Library, Own};

/// All of them.
const OFFERED: [(&str, Work); 80] = [
    ("abs", Library(cost::copying)),
    ("array.concat", Library(cost::rearranging)),
    ("array.reverse", Library(cost::rearranging)),
    ("array.slice", Library(cost::rearranging)),
    ("bits.and", Library(cost::copying)),
    ("bits.negate", Library(cost::copying)),
    ("bits.or", Library(cost::copying)),
    ("bits.rsh", Library(cost::copying)),
    ("bits.xor", Library(cost::copying)),
    ("ceil", Library(cost::copying)),
    ("concat", Library(cost::joining)),
    ("contains", Library(cost::reading)),
    ("count", Library(cost::counting)),
    ("endswith", Library(cost::reading)),
    ("floor", Library(cost::copying)),
    ("format_int", Library(cost::digits)),
    ("indexof", Library(cost::searching)),
    ("indexof_n", Library(cost::searching_all)),
    ("intersection", Library(cost::folding)),
    ("is_array", Library(cost::kind)),
    ("is_boolean", Library(cost::kind)),
    ("is_null", Library(cost::kind)),
    ("is_number", Library(cost::kind)),
    ("is_object", Library(cost::kind)),
    ("is_set", Library(cost::kind)),
    ("is_string", Library(cost::kind)),
    ("json.is_valid", Library(cost::parsing)),
    ("json.marshal", Library(cost::writing)),
    ("json.unmarshal", Library(cost::parsing)),
    ("lower", Library(cost::copying)),
    ("max", Library(cost::reading)),
    ("min", Library(cost::reading)),
    ("net.cidr_contains", Library(cost::reading)),
    ("net.cidr_is_valid", Library(cost::reading)),
    ("object.filter", Library(cost::ordering)),
    ("object.get", Library(cost::finding)),
    ("object.keys", Library(cost::ordering)),
    ("object.remove", Library(cost::ordering)),
    ("object.subset", Library(cost::containing)),
    ("object.union", Library(cost::ordering)),
    ("product", Library(cost::multiplying)),
    ("regex.find_n", Own(regular::find)),
    ("regex.is_valid", Own(regular::is_valid)),
    ("regex.match", Own(regular::is_match)),
    ("regex.split", Own(regular::split)),
    ("replace", Library(cost::replacing)),
    ("round", Library(cost::copying)),
    ("sort", Library(cost::ordering)),
    ("split", Library(cost::splitting)),
    ("sprintf", Library(cost::formatting)),
    ("startswith", Library(cost::reading)),
    ("strings.any_prefix_match", Library(cost::pairing)),
    ("strings.any_suffix_match", Library(cost::pairing)),
    ("strings.count", Library(cost::occurrences)),
    ("strings.reverse", Library(cost::copying)),
    ("substring", Library(cost::copying)),
    ("sum", Library(cost::copying)),
    ("time.add_date", Library(cost::time)),
    ("time.clock", Library(cost::time)),
    ("time.date", Library(cost::time)),
    ("time.diff", Library(cost::time)),
    ("time.format", Library(cost::layout)),
    ("time.parse_duration_ns", Library(cost::duration)),
    ("time.parse_ns", Library(cost::layout)),
    ("time.parse_rfc3339_ns", Library(cost::time)),
    ("time.weekday", Library(cost::time)),
    ("to_number", Library(cost::number)),
    ("trim", Library(cost::trimming)),
    ("trim_left", Library(cost::trimming)),
    ("trim_prefix", Library(cost::copying)),
    ("trim_right", Library(cost::trimming)),
    ("trim_space", Library(cost::copying)),
    ("trim_suffix", Library(cost::copying)),
    ("type_name", Library(cost::kind)),
    ("union", Library(cost::folding)),
    ("units.parse", Library(cost::number)),
    ("units.parse_bytes", Library(cost::number)),
    ("upper", Library(cost::copying)),
    ("__builtin_sets.intersection", Library(cost::ordering)),
    ("__builtin_sets.union", Library(cost::ordering)),
];

/// What the text that runs reads through (`watched`): each gives back what it is given, at a cost.
const WATCHED: [(&str, CostOf); 4] = [
    (watched::EACH, cost::turns),
    (watched::FIND, cost::search),
    (watched::READ, cost::comparison),
    (watched::COUNT, cost::calculation),
];

/// Functions whose answer can be a number that the text did not say exactly.
const READ_NUMBERS: [&str; 2] = ["json.unmarshal", "to_number"];

/// What is wrong with calling a function; `None` when nothing is.
pub(super) fn fault(name: &str) -> Option<String> {
    if names().any(|offered| offered == name) {
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

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OFFERED.iter().map(|(name, _)| *name)
}

/// Why a function gives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    /// A bound was met.
    Spent,
    /// It does not take these arguments.
    Arguments,
}

impl From<Spent> for Failed {
    fn from(_: Spent) -> Self {
        Self::Spent
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spent => "the policy took more than it may",
            Self::Arguments => "the function does not take these arguments",
        })
    }
}

impl std::error::Error for Failed {}

/// Puts them all before the interpreter's own.
pub(super) fn install(engine: &mut Engine, patterns: &Arc<Patterns>) -> Option<()> {
    let place = Place::new()?;
    for (name, work) in OFFERED {
        let library = *BUILTINS.get(name)?;
        let (place, patterns) = (place.clone(), Arc::clone(patterns));
        let run = move |args: Vec<Value>| {
            meter::take(meter::CALL).map_err(Failed::from)?;
            let cost_of = match work {
                Own(own) => return Ok(own(&patterns, &args)?),
                Library(cost_of) => cost_of,
            };
            let cost = cost_of(&args).ok_or(Failed::Arguments)?;
            meter::take(cost).map_err(Failed::from)?;
            let called = catch_unwind(AssertUnwindSafe(|| {
                (library.0)(&place.span, place.params(args.len()), &args, true)
            }));
            match called {
                Ok(Ok(value)) if READ_NUMBERS.contains(&name) && !is_exact(&value) => {
                    Err(Failed::Arguments.into())
                }
                Ok(given) => given,
                Err(_) => Err(Failed::Arguments.into()),
            }
        };
        engine
            .add_extension(name.to_owned(), library.1, Box::new(run))
            .ok()?;
    }
    for (name, cost_of) in WATCHED {
        let give_back = move |mut args: Vec<Value>| {
            meter::take(meter::CALL).map_err(Failed::from)?;
            let cost = cost_of(&args).ok_or(Failed::Arguments)?;
            meter::take(cost).map_err(Failed::from)?;
            Ok(args.pop().ok_or(Failed::Arguments)?)
        };
        engine
            .add_extension(name.to_owned(), 1, Box::new(give_back))
            .ok()?;
    }
    Some(())
}

/// Whether no number in it could have been another: what no 64 bits hold was made a float.
fn is_exact(value: &Value) -> bool {
    /// Up to here every whole number has a float of its own.
    const EXACT_TO: f64 = 9_007_199_254_740_992.0;
    match value {
        // Of a whole number above it, only one that is a float says that it is one.
        Value::Number(number) => number.as_f64().is_none_or(|float| float.abs() <= EXACT_TO),
        Value::Array(values) => values.iter().all(is_exact),
        Value::Object(members) => members.values().all(is_exact),
        _ => true,
    }
}

/// Where a call stands, which a function of the library wants for what it says of errors: nowhere.
#[derive(Clone)]
struct Place {
    span: Span,
    params: Arc<[NodeRef<Expr>]>,
}

impl Place {
    fn new() -> Option<Self> {
        let source = Source::from_contents("function".to_owned(), String::new()).ok()?;
        let span = Span {
            source,
            line: 1,
            col: 1,
            start: 0,
            end: 0,
        };
        let param = |_| {
            NodeRef::new(Expr::Null {
                span: span.clone(),
                value: Value::Null,
                eidx: 0,
            })
        };
        let params = (0..8).map(param).collect();
        Some(Self { span, params })
    }

    fn params(&self, count: usize) -> &[NodeRef<Expr>] {
        self.params.get(..count).unwrap_or_default()
    }
}

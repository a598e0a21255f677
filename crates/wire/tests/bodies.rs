//! Bodies and streams against naive readers: for any bytes, and for any split.
//!
//! Three sources of input share the checks: committed vectors, committed fuzzing corpora, and random
//! documents. Not here: tables of single rules, which are beside the code.

#[path = "bodies/corpus.rs"]
mod corpus;
#[path = "../../../fuzz/checks/json_head.rs"]
mod json_head;
#[path = "bodies/random.rs"]
mod random;
#[path = "../../../fuzz/checks/sse_scan.rs"]
mod sse_scan;
#[path = "bodies/turns.rs"]
mod turns;
#[path = "bodies/vectors.rs"]
mod vectors;

//! `wire` from outside: bodies, streams and HTTP/1.1 against naive readers, for any bytes and for any split.
//!
//! Three sources of input share the checks: committed vectors, committed fuzzing corpora, and random
//! documents. Not here: tables of single rules, which are beside the code.

mod bodies;
mod fuzz_corpus;
mod http1_request;

//! `tollgate explain` by header and by default.

use std::path::Path;

use crate::harness::tollgate;

#[test]
fn explain_says_whether_a_header_named_the_workload_or_the_default_was_taken() {
    let explained = |words: &[&str]| {
        let words = [&["explain", "--model", "m"], words].concat();
        let environment = [("OPENAI_API_KEY", "k"), ("COLUMNS", "200")];
        let ended = tollgate(Path::new("."), &words, &environment);
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
        ended.out
    };
    let header = ["--header", "x-workload-app: default"];
    let by_header = explained(&header);
    let line = "workload   default, known by the header x-workload-app\n";
    assert!(by_header.contains(line), "{by_header}");
    let by_default = explained(&[]);
    let line = "workload   default, by `default` of `identity`, as the call has no header x-workload-app\n";
    assert!(by_default.contains(line), "{by_default}");
    let json = explained(&["--json"]);
    assert!(json.contains("\"identity\": \"default\""), "{json}");
    let json = explained(&["--json", header[0], header[1]]);
    assert!(json.contains("\"identity\": \"header\""), "{json}");
}

//! What is a link, an anchor and a block, and what only looks like one.

use super::{Page, slug};

#[test]
fn names_of_headings_are_those_of_github() {
    let cases = [
        ("Who may do what", "who-may-do-what"),
        ("`tollgate init`, and more", "tollgate-init-and-more"),
        (
            "1. HTTP/1.1 by a codec of our own",
            "1-http11-by-a-codec-of-our-own",
        ),
        ("A [link](x.md#y) in it", "a-link-in-it"),
        ("Ärger & `snake_case`", "ärger--snake_case"),
        ("What's *new*?", "whats-new"),
    ];
    for (heading, name) in cases {
        assert_eq!(slug(heading), name);
    }
}

#[test]
fn anchors_are_headings_and_own_ids_and_none_twice() {
    let text = "# A\n## B\n### B\n<a id=\"c_d\"></a>\n#no\n```sh\n# E\n```\n## B\n";
    assert_eq!(Page::of(text).anchors(), ["a", "b", "b-1", "c_d", "b-2"]);
}

#[test]
fn code_holds_no_links() {
    let text = "[a](b.md#c) `[d](e)` ``[f`](g)``\n[`h`](i)\n`one\n[j](k)`\n[l](m \"title\")\n```text\n[n](o)\n```\n`\n\n[p](q)\n";
    let links = Page::of(text).links();
    let links: Vec<(usize, &str)> = links
        .iter()
        .map(|link| (link.line, link.target.as_str()))
        .collect();
    assert_eq!(links, [(1, "b.md#c"), (2, "i"), (5, "m"), (11, "q")]);
}

#[test]
fn blocks_have_their_info_their_line_and_no_indentation() {
    let text = "a\n```yaml part\nb: c\n```\n- d\n  ```console unrun=needs-x\n  $ e\n    f\n  ```\n````text\n```sh\n````\n";
    let blocks = Page::of(text).blocks();
    let blocks: Vec<(usize, &str, &str)> = blocks
        .iter()
        .map(|block| (block.line, block.info, block.text.as_str()))
        .collect();
    assert_eq!(
        blocks,
        [
            (2, "yaml part", "b: c\n"),
            (6, "console unrun=needs-x", "$ e\n  f\n"),
            (10, "text", "```sh\n"),
        ]
    );
}

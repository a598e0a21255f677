//! Counts of lists, whole and cut anywhere.

use super::*;

#[test]
fn the_values_of_a_list_are_counted_by_their_kinds_wherever_the_list_is_cut() {
    // others, strings, numbers, inner numbers
    let rows: [(&str, [u64; 4]); 14] = [
        ("[]", [0; 4]),
        ("[ ]", [0; 4]),
        (r#"["a","b"]"#, [2, 2, 0, 0]),
        (r#"[ "a,[1]\"," , "\\" ]"#, [2, 2, 0, 0]),
        (r#"["\\\"",""]"#, [2, 2, 0, 0]),
        ("[1,2, 3\n,-4,5e6,7.5E-1]", [0, 0, 6, 0]),
        ("[[1,2],[3]]", [2, 0, 0, 3]),
        ("[[ ],[[1]],[2]]", [3, 0, 0, 1]),
        (r#"[1,"a",[2]]"#, [2, 1, 1, 1]),
        (r#"[true,false,null]"#, [3, 0, 0, 0]),
        (r#"[{"n":1,"t":["f"]},{}]"#, [2, 0, 0, 1]),
        (r#"["true","1","[",1]"#, [3, 3, 1, 0]),
        ("[0,0]", [0, 0, 2, 0]),
        (r#"[["a",1],["b"]]"#, [2, 0, 0, 1]),
    ];
    for (list, counts) in rows {
        let read = |pieces: &[&[u8]]| {
            let mut elements = Elements::NONE;
            pieces.iter().for_each(|piece| elements.read(piece));
            let Elements {
                others,
                strings,
                numbers,
                inner_numbers,
                ..
            } = elements;
            [others, strings, numbers, inner_numbers]
        };
        assert_eq!(read(&[list.as_bytes()]), counts, "{list}");
        for at in 0..=list.len() {
            let (start, end) = list.as_bytes().split_at(at);
            assert_eq!(read(&[start, end]), counts, "{list} cut at {at}");
        }
        let bytes: Vec<&[u8]> = list.as_bytes().chunks(1).collect();
        assert_eq!(read(&bytes), counts, "{list} byte by byte");
    }
}

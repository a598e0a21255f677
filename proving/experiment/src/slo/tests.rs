//! Limits kept, missed and misspelt.

use super::*;

fn slo() -> Slo {
    "ttft<=2s, tpot<=50ms,itl<=200ms,e2e<=1m".parse().unwrap()
}

const KEPT: Times = Times {
    ttft_s: Some(2.0),
    itl_s: Some(0.2),
    tpot_s: Some(0.05),
    e2e_s: Some(60.0),
};

#[test]
fn an_exchange_at_its_limits_is_good_and_one_past_any_is_not() {
    assert!(slo().is_good(&KEPT));
    for (measure, past) in [
        (
            Measure::Ttft,
            Times {
                ttft_s: Some(2.001),
                ..KEPT
            },
        ),
        (
            Measure::Itl,
            Times {
                itl_s: Some(0.201),
                ..KEPT
            },
        ),
        (
            Measure::Tpot,
            Times {
                tpot_s: Some(0.051),
                ..KEPT
            },
        ),
        (
            Measure::E2e,
            Times {
                e2e_s: Some(60.1),
                ..KEPT
            },
        ),
        (
            Measure::Ttft,
            Times {
                ttft_s: None,
                ..KEPT
            },
        ),
    ] {
        assert!(!slo().is_good(&past));
        assert!(slo().missed(&past).eq([measure]));
    }
}

#[test]
fn one_token_keeps_limits_between_tokens_and_a_failure_keeps_none() {
    let one = Times {
        itl_s: None,
        tpot_s: None,
        ..KEPT
    };
    assert!(slo().is_good(&one));
    let only_between: Slo = "tpot<=1s".parse().unwrap();
    assert!(!only_between.is_good(&Times::default()));
}

#[test]
fn goodput_is_a_share_of_all_exchanges() {
    let mut goodput = Goodput::default();
    assert_eq!(goodput.share(), None);
    let slow = Times {
        ttft_s: Some(3.0),
        tpot_s: Some(1.0),
        ..KEPT
    };
    for times in [KEPT, slow, Times::default(), KEPT] {
        goodput.count(&slo(), &times);
    }
    let mut both = goodput.clone();
    both.absorb(&goodput);
    assert_eq!((both.exchanges, both.good, both.failed), (8, 4, 2));
    assert_eq!(both.share(), Some(0.5));
    assert_eq!(both.missed[&Measure::Tpot], 2);
    assert_eq!(serde_json::to_value(&both).unwrap()["missed"]["ttft"], 2);
}

#[test]
fn limits_are_printed_as_they_are_read_and_errors_say_what_is_wrong() {
    let text = "ttft<=2s,tpot<=0.05s";
    assert_eq!(text.parse::<Slo>().unwrap().to_string(), text);
    for (text, says) in [
        ("", "no limit"),
        ("ttft<2s", "no limit"),
        ("ttlt<=2s", "none of ttft"),
        ("ttft<=2", "no time"),
        ("ttft<=2s,ttft<=3s", "twice"),
        ("ttft<=2s,", "no limit"),
    ] {
        let error = text.parse::<Slo>().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

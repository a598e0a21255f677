//! What is read, what is printed, and what is refused with which words.

use super::*;

fn process(text: &str) -> Process {
    match text.parse() {
        Ok(Spec::Process(process)) => process,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn every_kind_is_read() {
    assert_eq!(process("constant:100ms"), Process::Constant { mean_s: 0.1 });
    assert_eq!(process("constant:0s"), Process::Constant { mean_s: 0.0 });
    assert_eq!(
        process("exponential:7.5s"),
        Process::Exponential { mean_s: 7.5 }
    );
    assert_eq!(
        process("exponential:30/m"),
        Process::Exponential { mean_s: 2.0 }
    );
    let gamma = Process::Gamma {
        mean_s: 120.0,
        cv: 1.5,
    };
    assert_eq!(process("gamma:2m, cv=1.5"), gamma);
    assert_eq!(process("recorded"), Process::Recorded);
    let named: Spec = "trace:some/where,1.csv".parse().unwrap();
    assert_eq!(
        named,
        Spec::Trace {
            file: "some/where,1.csv".into()
        }
    );
}

#[test]
fn a_mean_may_be_left_to_somebody_else_who_asks_for_that() {
    for text in [
        "gamma:cv=1.5",
        "exponential",
        "mmpp:factor=4,on=6s,off=24s",
        "on-off",
        "constant",
    ] {
        let says = text.parse::<Spec>().unwrap_err().to_string();
        assert!(says.contains("says no mean"), "{says}");
        let (spec, is_unsaid) = Spec::without_mean(text).unwrap();
        let Spec::Process(process) = spec else {
            panic!("{text}")
        };
        assert!(
            is_unsaid && (process.rate().unwrap() - 1.0).abs() < 1e-9,
            "{text}: {process}"
        );
    }
    for text in [
        "gamma:2s,cv=1.5",
        "mmpp:high=20/s,low=0.5/s,on=2s,off=10s",
        "trace:x.csv",
        "recorded",
    ] {
        assert_eq!(
            Spec::without_mean(text).unwrap(),
            (text.parse().unwrap(), false)
        );
    }
}

#[test]
fn modulated_processes_keep_the_mean_that_was_asked_for() {
    let Process::Mmpp(on_off) = process("on-off:4/s") else {
        panic!()
    };
    assert_eq!(
        (on_off.low(), on_off.on_s(), on_off.off_s()),
        (0.0, 6.0, 24.0)
    );
    assert!((on_off.high() - 20.0).abs() < 1e-9 && (on_off.rate() - 4.0).abs() < 1e-9);
    let Process::Mmpp(floor) = process("mmpp:250ms") else {
        panic!()
    };
    assert!((floor.low() - 0.2).abs() < 1e-9 && (floor.rate() - 4.0).abs() < 1e-9);
    let Process::Mmpp(factor) = process("mmpp:4/s,factor=2,on=1s,off=3s") else {
        panic!()
    };
    assert!((factor.high() - 8.0).abs() < 1e-9 && (factor.rate() - 4.0).abs() < 1e-9);
    let Process::Mmpp(rates) = process("mmpp:high=20/s,low=0.5/s,on=2s,off=10s") else {
        panic!()
    };
    assert_eq!(rates, Mmpp::new(20.0, 0.5, 2.0, 10.0).unwrap());
}

#[test]
fn what_is_printed_reads_back_as_the_same() {
    for text in [
        "constant:0.1s",
        "exponential:7.55s",
        "gamma:7.5s,cv=1.5",
        "on-off:0.3s",
        "mmpp:7s,factor=3,on=1m,off=3m",
        "trace:a.csv",
        "recorded",
    ] {
        let spec: Spec = text.parse().unwrap();
        assert_eq!(spec.to_string().parse::<Spec>().unwrap(), spec);
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<Spec>(&json).unwrap(), spec);
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (text, says) in [
        ("poisson:1s", "none of constant"),
        ("exponential", "says no mean"),
        ("exponential:7.5", "no time"),
        ("exponential:7.5 s,cv=1", "no time"),
        ("exponential:1s,cv=1", "cv is no parameter"),
        ("exponential:0s", "between 1 us"),
        ("exponential:0/s", "between 1 us"),
        ("exponential:-1s", "no time"),
        ("gamma:1s", "says no cv"),
        ("gamma:1s,cv=0", "between 0.01"),
        ("gamma:1s,cv=nan", "no number"),
        ("gamma:1s,2s", "second mean"),
        ("gamma:1s,cv=1,cv=2", "twice"),
        ("on-off:1s,factor=2", "factor is no parameter"),
        ("on-off:1s,on=0s", "at least 1 ms"),
        ("mmpp:1s,factor=6", "at most 5"),
        ("mmpp:1s,factor=1", "above 1"),
        (
            "mmpp:high=1/s,low=2/s,on=1s,off=1s",
            "less than that of the high",
        ),
        ("mmpp:high=1/s,on=1s,off=1s", "needs low="),
        ("on-off:1000h,on=1ms,off=1ms", "rarer"),
        ("trace:", "names no file"),
        ("recorded:1s", "no place here"),
    ] {
        let error = text.parse::<Spec>().unwrap_err().to_string();
        assert!(
            error.contains(says) && error.contains(text),
            "{text}: {error}"
        );
    }
}

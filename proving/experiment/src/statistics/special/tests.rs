//! Values from the tables of Abramowitz and Stegun, and from closed forms.

use super::*;

fn near(value: f64, wanted: f64, relative: f64) {
    assert!(
        (value - wanted).abs() <= relative * wanted.abs(),
        "{value} is not {wanted}"
    );
}

#[test]
fn the_gamma_function_has_its_tabled_values() {
    near(ln_gamma(0.5), PI.sqrt().ln(), 1e-13);
    near(ln_gamma(0.25), 3.625_609_908_221_908_f64.ln(), 1e-13);
    near(ln_gamma(11.0), 3_628_800_f64.ln(), 1e-13);
    near(
        ln_gamma(1e6),
        1e6 * 1e6_f64.ln() - 1e6 - 0.5 * (1e6 / (2.0 * PI)).ln(),
        1e-12,
    );
}

#[test]
fn incomplete_gamma_agrees_with_exponential_and_poisson_sums() {
    for x in [1e-6, 0.1, 0.9, 3.0, 30.0] {
        near(gamma_pq(1.0, x).1, (-x).exp(), 1e-12);
        let poisson = (-x).exp() * (1.0 + x + x * x / 2.0 + x * x * x / 6.0);
        near(gamma_pq(4.0, x).1, poisson, 1e-11);
    }
    // Chi-squared tables: 5 % with 10 degrees of freedom is 18.307, 99 % with 100 is 70.065.
    near(gamma_pq(5.0, 18.307_038 / 2.0).1, 0.05, 1e-6);
    near(gamma_pq(50.0, 70.064_895 / 2.0).1, 0.99, 1e-7);
    let (p, q) = gamma_pq(1e6, 1e6);
    near(p, 0.5 + 1.0 / (3.0 * (2.0 * PI * 1e6).sqrt()), 1e-6);
    near(p + q, 1.0, 1e-15);
    assert_eq!(gamma_pq(0.4, 0.0), (0.0, 1.0));
}

#[test]
fn the_normal_distribution_has_its_tabled_values() {
    near(erfc(0.5), 0.479_500_122_186_953_5, 1e-12);
    near(erfc(-1.0), 1.842_700_792_949_714_8, 1e-12);
    near(erfc(5.0), 1.537_459_794_428_035e-12, 1e-10);
    near(normal_outside(1.959_963_984_540_054), 0.05, 1e-10);
}

#[test]
fn students_distribution_is_near_its_tabled_values() {
    near(student_outside(2.093_024, 19.0), 0.05, 0.01);
    near(student_outside(3.883_406, 19.0), 0.001, 0.01);
    near(student_outside(2.228_139, 10.0), 0.05, 0.01);
}

#[test]
fn a_large_shape_is_as_a_little_smaller_one_and_in_its_middle_where_it_belongs() {
    for z in [-3.0, -1.0, 0.0, 0.5, 2.0] {
        let at = |a: f64| gamma_pq(a, a + z * a.sqrt()).0;
        near(at(1.0001e6), at(0.9999e6), 1e-4);
        // The skewness of the law is 2 / sqrt(a).
        near(at(2e10), normal_above(-z), 1e-3);
    }
}

//! Small charts as SVG, made here: they need no script, and scale.

use maud::{Markup, html};

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 72.0;
/// Room above the highest value, so that its line isn't cut.
const TOP: f64 = 4.0;

/// One line of a chart, by time; a gap where nothing is known.
pub struct Line<'a> {
    pub name: &'a str,
    /// For its colour.
    pub class: &'static str,
    /// Minutes ago, and the value then.
    pub points: Vec<(f64, f64)>,
}

/// Lines over the last `minutes`, with the newest and the highest value in words.
pub fn chart(
    title: &str,
    lines: &[Line<'_>],
    minutes: f64,
    unit: &dyn Fn(f64) -> String,
    none: &str,
) -> Markup {
    let highest =
        lines.iter().flat_map(|line| &line.points).map(|point| point.1).fold(0.0, f64::max);
    let latest = |line: &Line<'_>| line.points.last().map(|point| unit(point.1));
    let told: Vec<String> = lines
        .iter()
        .filter_map(|line| Some(format!("{} {}", line.name, latest(line)?).trim().to_owned()))
        .collect();
    let summary = if told.is_empty() { none.to_owned() } else { told.join(", ") };
    html! {
        figure.chart {
            figcaption {
                span.name { (title) }
                span.now {
                    @if told.is_empty() { (none) }
                    @for line in lines {
                        @if let Some(latest) = latest(line) {
                            span class={ "key " (line.class) } { (line.name) " " b { (latest) } } " "
                        }
                    }
                }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ (title) ": " (summary) } preserveAspectRatio="none" {
                line.base x1="0" x2=(WIDTH) y1=(HEIGHT - 1.0) y2=(HEIGHT - 1.0) {}
                @for line in lines {
                    @for path in paths(&line.points, minutes, highest) {
                        path class=(line.class) d=(path) vector-effect="non-scaling-stroke" {}
                    }
                }
            }
            p.hint { @if highest > 0.0 { "max " (unit(highest)) } @else { " " } }
        }
    }
}

/// A path for each run of points without a gap of more than two minutes.
fn paths(points: &[(f64, f64)], minutes: f64, highest: f64) -> Vec<String> {
    const GAP: f64 = 2.5;
    let mut paths: Vec<String> = vec![];
    let mut last = None;
    for (ago, value) in points {
        let x = WIDTH * (1.0 - ago / minutes);
        let y = HEIGHT - 1.0 - (HEIGHT - 1.0 - TOP) * (value / highest.max(f64::MIN_POSITIVE));
        match (paths.last_mut(), last) {
            (Some(path), Some(before)) if before - ago < GAP => {
                path.push_str(&format!("L{x:.1} {y:.1}"));
            }
            // A point of its own is a short line, so that it is seen.
            _ => paths.push(format!("M{:.1} {y:.1}L{x:.1} {y:.1}", x - 1.5)),
        }
        last = Some(*ago);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_where_nothing_is_known() {
        let drawn = paths(&[(120.0, 0.0), (119.0, 10.0), (60.0, 5.0)], 120.0, 10.0);
        assert_eq!(drawn, ["M-1.5 71.0L0.0 71.0L2.7 4.0", "M158.5 37.5L160.0 37.5"]);
        assert!(paths(&[], 120.0, 0.0).is_empty());
        assert_eq!(paths(&[(0.0, 0.0)], 120.0, 0.0), ["M318.5 71.0L320.0 71.0"]);
    }

    #[test]
    fn a_chart_says_in_words_what_it_shows() {
        let line = Line { name: "p50", class: "a", points: vec![(1.0, 4.0), (0.0, 2.0)] };
        let unit = |value: f64| format!("{value:.0} ms");
        let shown = chart("Lag <x>", &[line], 120.0, &unit, "none").into_string();
        assert!(
            shown.contains("aria-label=\"Lag &lt;x&gt;: p50 2 ms\"") && shown.contains("max 4 ms"),
            "{shown}"
        );
        assert!(chart("Lag", &[], 120.0, &unit, "none").into_string().contains("Lag: none"));
    }
}

//! Whether relevance tells the questions that an index answers from those that it can't.

use serde::Serialize;

/// Below this, a first hit is taken for no answer.
const THRESHOLD: f32 = 0.2;

/// How the relevance of first hits is spread. A question without any hit has 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Separation {
    /// The chance that a question of the set is rated above one that is off its topic, or nonsense.
    pub auc: f64,
    /// The share of these rated below 0.2.
    pub off_topic_below: f64,
    pub nonsense_below: f64,
    /// The share of the set's own questions rated 0.2 and above.
    pub on_topic_above: f64,
    #[serde(skip)]
    pub on_topic: Vec<f32>,
    #[serde(skip)]
    pub off_topic: Vec<f32>,
    #[serde(skip)]
    pub nonsense: Vec<f32>,
}

/// Compares the relevance of first hits.
pub fn separate(on_topic: Vec<f32>, off_topic: Vec<f32>, nonsense: Vec<f32>) -> Separation {
    let below = |relevance: &[f32]| {
        let below = relevance.iter().filter(|relevance| **relevance < THRESHOLD).count();
        if relevance.is_empty() { 1.0 } else { below as f64 / relevance.len() as f64 }
    };
    let negative: Vec<f32> = off_topic.iter().chain(&nonsense).copied().collect();
    Separation {
        auc: auc(&on_topic, &negative),
        off_topic_below: below(&off_topic),
        nonsense_below: below(&nonsense),
        on_topic_above: 1.0 - if on_topic.is_empty() { 0.0 } else { below(&on_topic) },
        on_topic,
        off_topic,
        nonsense,
    }
}

/// The chance that one of `positive` is above one of `negative`; equal ones count half.
fn auc(positive: &[f32], negative: &[f32]) -> f64 {
    let mut sorted = negative.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let above = |value: &f32| {
        let below = sorted.partition_point(|other| other < value);
        let up_to = sorted.partition_point(|other| other <= value);
        (below + up_to) as f64 / 2.0
    };
    let pairs = (positive.len() * negative.len()) as f64;
    if pairs > 0.0 { positive.iter().map(above).sum::<f64>() / pairs } else { 1.0 }
}

/// Draws, for each set, how many of its questions have at least a relevance: three lines over 0–1.
pub fn plot(sets: &[(String, Separation)]) -> String {
    const WIDTH: f64 = 260.0;
    const HEIGHT: f64 = 140.0;
    const COLUMNS: usize = 3;
    let rows = sets.len().div_ceil(COLUMNS);
    let columns = sets.len().min(COLUMNS);
    let (cell_width, cell_height) = (WIDTH + 50.0, HEIGHT + 60.0);
    let (width, height) = (columns as f64 * cell_width, rows as f64 * cell_height + 30.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    for (at, (name, separation)) in sets.iter().enumerate() {
        let (x, y) =
            ((at % COLUMNS) as f64 * cell_width + 35.0, (at / COLUMNS) as f64 * cell_height);
        let y = y + 30.0;
        svg += &format!(
            "<g transform=\"translate({x} {y})\">\n<text y=\"-8\">{} (AUC {:.3})</text>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"none\" stroke=\"#999\"/>\n",
            escape(name),
            separation.auc
        );
        for tick in 0..=5 {
            let value = f64::from(tick) / 5.0;
            svg += &format!(
                "<text x=\"{:.0}\" y=\"{}\" text-anchor=\"middle\">{value:.1}</text>\n",
                value * WIDTH,
                HEIGHT + 14.0
            );
        }
        svg += &format!(
            "<line x1=\"{0}\" x2=\"{0}\" y2=\"{HEIGHT}\" stroke=\"#bbb\" stroke-dasharray=\"3\"/>\n",
            f64::from(THRESHOLD) * WIDTH
        );
        for (values, colour) in [
            (&separation.on_topic, "#1a7f37"),
            (&separation.off_topic, "#cf222e"),
            (&separation.nonsense, "#8250df"),
        ] {
            if values.is_empty() {
                continue;
            }
            let points: Vec<String> = (0..=100)
                .map(|step| {
                    let least = step as f32 / 100.0;
                    let share = values.iter().filter(|value| **value >= least).count();
                    let share = share as f64 / values.len() as f64;
                    format!("{:.1},{:.1}", f64::from(least) * WIDTH, (1.0 - share) * HEIGHT)
                })
                .collect();
            svg += &format!(
                "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>\n",
                points.join(" ")
            );
        }
        svg += "</g>\n";
    }
    let y = height - 10.0;
    svg += &format!(
        "<text x=\"35\" y=\"{y}\">Share of questions whose first hit has at least this relevance: \
         <tspan fill=\"#1a7f37\">of the set</tspan>, <tspan fill=\"#cf222e\">off its topic</tspan>, \
         <tspan fill=\"#8250df\">nonsense</tspan></text>\n</svg>\n"
    );
    svg
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auc_is_the_chance_to_be_above() {
        let cases: &[(&[f32], &[f32], f64)] = &[
            (&[0.9, 0.8], &[0.1, 0.2], 1.0),
            (&[0.1], &[0.9], 0.0),
            (&[0.5], &[0.5], 0.5),
            (&[0.5, 0.9], &[0.5, 0.6], 0.625),
            (&[], &[0.1], 1.0),
        ];
        for (positive, negative, expected) in cases {
            assert_eq!(auc(positive, negative), *expected, "{positive:?} {negative:?}");
        }
    }

    #[test]
    fn shares_are_of_each_kind() {
        let got = separate(vec![0.1, 0.2, 0.9], vec![0.0, 0.5], vec![0.1]);
        assert!((got.on_topic_above - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!((got.off_topic_below, got.nonsense_below), (0.5, 1.0));
    }

    #[test]
    fn a_plot_is_whole() {
        let one = separate(vec![0.7], vec![0.1], vec![]);
        let svg = plot(&[("a<b".into(), one)]);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a&lt;b (AUC 1.000)") && svg.matches("<polyline").count() == 2);
    }
}

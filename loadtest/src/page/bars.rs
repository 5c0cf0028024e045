//! Bars that lie: one for each name, of one or more parts.

use super::{colour, escaped, figure, legend};
use crate::stats::count;

const WIDTH: f64 = 900.0;
const NAMES: f64 = 130.0;
const FIGURES: f64 = 110.0;
const BAR: f64 = 22.0;
const STEP: f64 = 32.0;
const TOP: f64 = 30.0;

/// A bar.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// Its parts, in the order of the series.
    pub(crate) values: Vec<f64>,
}

/// A chart; the figure behind each bar is the sum of its parts.
pub(crate) fn bars(series: &[&str], bars: &[Bar], unit: &str) -> String {
    let total = |bar: &Bar| bar.values.iter().sum::<f64>();
    let most = bars.iter().map(total).fold(f64::MIN_POSITIVE, f64::max);
    let height = TOP + STEP * count(bars.len() as u64) + 6.0;
    let mut drawn = format!("<svg viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" role=\"img\">");
    if series.len() > 1 {
        drawn += &legend(series, NAMES, 16.0);
    }
    for (number, bar) in bars.iter().enumerate() {
        let top = TOP + STEP * count(number as u64);
        let text = top + 0.7 * BAR;
        drawn += &format!(
            "<text x=\"{:.0}\" y=\"{text:.0}\" text-anchor=\"end\">{}</text>",
            NAMES - 8.0,
            escaped(&bar.name)
        );
        let mut left = NAMES;
        for (part, value) in bar.values.iter().enumerate() {
            let width = value / most * (WIDTH - NAMES - FIGURES);
            drawn += &format!(
                "<rect x=\"{left:.1}\" y=\"{top:.0}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{}\"/>",
                colour(part)
            );
            left += width;
        }
        let figure = figure(total(bar));
        drawn += &format!("<text x=\"{:.0}\" y=\"{text:.0}\">{figure} {}</text>", left + 6.0, escaped(unit));
    }
    drawn + "</svg>"
}

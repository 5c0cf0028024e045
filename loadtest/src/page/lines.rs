//! Lines over a logarithmic scale, each point with its interval.

use super::{colour, escaped, figure, legend};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// What stands on a logarithmic axis between two powers of ten.
const STEPS: [f64; 6] = [1.0, 1.5, 2.0, 3.0, 5.0, 7.0];
/// Figures below the axis are so far from each other.
const FIGURES_APART: f64 = 34.0;

/// A line.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Where, how much, and the interval of that.
    pub(crate) points: Vec<(f64, f64, f64, f64)>,
}

/// A scale from one end of the drawing to the other.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64> + Clone, from: f64, to: f64) -> Self {
        let positive = values.filter(|v| *v > 0.0);
        let low = positive.clone().fold(f64::MAX, f64::min);
        let high = positive.fold(f64::MIN_POSITIVE, f64::max);
        // A single value has room around it.
        let (low, high) = if low < high { (low, high) } else { (high / 2.0, high * 2.0) };
        Self { low: low * 0.95, high: high * 1.05, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.from + share * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        let powers = (-12..12).map(|power| 10_f64.powi(power));
        let all = powers.flat_map(|power| STEPS.map(|step| step * power));
        all.filter(|value| (self.low..=self.high).contains(value)).collect()
    }
}

/// A chart; both axes are logarithmic.
pub(crate) fn lines(lines: &[Line], below: &str, unit: &str) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let x = Scale::new(points().map(|p| p.0), LEFT, WIDTH - RIGHT);
    let y = Scale::new(points().flat_map(|p| [p.2, p.3]), HEIGHT - BOTTOM, TOP);
    let mut drawn = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\">");
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    drawn += &legend(&names, LEFT, 18.0);
    for value in y.ticks() {
        let at = y.at(value);
        let (end, text) = (WIDTH - RIGHT, LEFT - 8.0);
        drawn += &format!(
            "<path d=\"M{LEFT} {at:.1}H{end}\" stroke=\"#8884\"/><text x=\"{text}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            at + 4.0,
            figure(value)
        );
    }
    let mut places: Vec<f64> = points().map(|p| p.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut last = f64::INFINITY;
    // From the end on: what is at the end is always told.
    for value in places.into_iter().rev() {
        let (at, text) = (x.at(value), HEIGHT - BOTTOM + 18.0);
        if last - at >= FIGURES_APART {
            last = at;
            drawn += &format!("<text x=\"{at:.1}\" y=\"{text}\" text-anchor=\"middle\">{value}</text>");
        }
    }
    let middle = f64::midpoint(LEFT, WIDTH - RIGHT);
    drawn += &format!(
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text><text x=\"8\" y=\"{TOP}\">{}</text>",
        HEIGHT - 8.0,
        escaped(below),
        escaped(unit)
    );
    for (series, line) in lines.iter().enumerate() {
        drawn += &draw(line, colour(series), &x, &y);
    }
    drawn + "</svg>"
}

fn draw(line: &Line, colour: &str, x: &Scale, y: &Scale) -> String {
    let at: Vec<String> = line.points.iter().map(|p| format!("{:.1},{:.1}", x.at(p.0), y.at(p.1))).collect();
    let mut drawn = format!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
        at.join(" ")
    );
    for (place, value, low, high) in &line.points {
        let (cx, top, bottom) = (x.at(*place), y.at(*high), y.at(*low));
        drawn += &format!(
            "<path d=\"M{cx:.1} {top:.1}V{bottom:.1}\" stroke=\"{colour}\"/><circle cx=\"{cx:.1}\" cy=\"{:.1}\" \
             r=\"3.5\" fill=\"{colour}\"/>",
            y.at(*value)
        );
    }
    drawn
}

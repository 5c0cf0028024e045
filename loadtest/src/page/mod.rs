//! Reports as one page: tables, and charts drawn as SVG within it, so that it needs no network. Pure.

mod bars;
mod lines;

pub(crate) use bars::{Bar, bars};
pub(crate) use lines::{Line, lines};

/// Colours of series, told apart also by who sees no red or green (Okabe and Ito).
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#777777"];

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:66rem;margin:2rem auto;padding:0 1rem;\
color:#222;background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}\
table{border-collapse:collapse;font-size:13px}\
td,th{border-bottom:1px solid #ddd;padding:.25rem .6rem;text-align:right}td:first-child,th:first-child{text-align:left}\
svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#222}.note{color:#666;font-size:13px}\
.scroll{overflow-x:auto}@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}svg text{fill:#ddd}\
td,th{border-color:#444}.note{color:#999}}";

/// What a chart has to say that stands alone.
const IMAGE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" font-family=\"sans-serif\" font-size=\"13\" ";
const GROUND: &str = "><rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>";

/// A page of these parts.
pub(crate) fn page(title: &str, parts: &[String]) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n{}\n</body>\n</html>\n",
        parts.join("\n")
    )
}

/// A chart as a file of its own, for a page of others: it brings its letters and its white ground along.
pub(crate) fn image(chart: &str) -> String {
    chart.replacen("<svg ", IMAGE, 1).replacen('>', GROUND, 1) + "\n"
}

/// A part with a heading.
pub(crate) fn section(heading: &str, note: &str, content: &str) -> String {
    let (heading, note) = (escaped(heading), escaped(note));
    format!("<h2>{heading}</h2>\n<p class=\"note\">{note}</p>\n<div class=\"scroll\">{content}</div>")
}

/// A paragraph.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<p>{}</p>", escaped(text))
}

/// A table; names in the first column.
pub(crate) fn table(header: &[String], rows: &[Vec<String>]) -> String {
    let row = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        format!("<tr>{cells}</tr>")
    };
    let rows: Vec<String> = rows.iter().map(|cells| row("td", cells)).collect();
    format!("<table>\n{}\n{}\n</table>", row("th", header), rows.join("\n"))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

/// With as many digits as people want to see.
fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.3} M", value / 1e6),
        v if v >= 1_000.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.2}"),
    }
}

/// Names of series with their colours, at a height.
fn legend(names: &[&str], left: f64, top: f64) -> String {
    let mut x = left;
    let mut drawn = String::new();
    for (series, name) in names.iter().enumerate() {
        let (square, text) = (top - 9.0, x + 14.0);
        drawn += &format!(
            "<rect x=\"{x:.0}\" y=\"{square:.0}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{text:.0}\" \
             y=\"{top:.0}\">{}</text>",
            colour(series),
            escaped(name)
        );
        x = text + 7.5 * crate::stats::count(name.len() as u64) + 16.0;
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_nothing_from_elsewhere_and_no_text_becomes_markup() {
        let bar = Bar { name: "push <b>".to_owned(), values: vec![1.0, 2.0] };
        let line = Line {
            name: "pull & push".to_owned(),
            points: vec![(1.0, 5.0, 4.0, 6.0), (100.0, 2.0, 1.0, 3.0)],
        };
        let parts = [
            section("Cost", "less is better", &bars(&["server", "client"], &[bar], "us")),
            section("Crossing", "", &lines(&[line], "% active", "us")),
            table(&["a".to_owned()], &[vec!["<x>".to_owned()]]),
        ];
        let page = page("twip & others", &parts);
        for forbidden in ["http://", "https://", "src=", "<b>", "<x>"] {
            assert!(!page.contains(forbidden), "{forbidden} in {page}");
        }
        assert!(page.contains("twip &amp; others") && page.contains("push &lt;b&gt;"));
        assert_eq!(page.matches("<svg").count(), 2);
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn a_chart_can_be_a_file_of_its_own() {
        let bar = Bar { name: "push".to_owned(), values: vec![1.0] };
        let alone = image(&bars(&["server"], &[bar], "us"));
        assert!(alone.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{alone}");
        assert!(alone.contains("role=\"img\"><rect width=\"100%\""), "{alone}");
        assert!(alone.ends_with("</svg>\n"), "{alone}");
    }

    #[test]
    fn figures_have_as_many_digits_as_people_want_to_see() {
        let told = [0.0, 0.126, 9.5, 12.345, 66_123.4, 3_141_592.0].map(figure);
        assert_eq!(told, ["0", "0.13", "9.50", "12.3", "66123", "3.142 M"]);
    }
}

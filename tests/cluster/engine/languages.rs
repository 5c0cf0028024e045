//! In which languages an account reads whom it follows: a document that pages go by, whichever way posts come to them.

use tideline::document::FOLLOW_LANGUAGES;
use tideline::post::Draft;
use tideline::{AccountId, ChosenAuthors, DeliveryWay, Engine, PostId, Query};

use super::documents::registration_of;
use super::{accounts, drained, engine_with, small, tenant, walk_home};

async fn says(engine: &Engine, author: AccountId, language: &str) -> PostId {
    engine.publish(author, &Draft::text("tide").language(language)).await.unwrap().id
}

#[tokio::test]
async fn whoever_is_read_in_some_languages_is_so_pushed_pulled_filled_and_chosen() {
    let options = tenant(40);
    let engine = engine_with(options.clone(), small()).await;
    let second = engine_with(options, small()).await;
    let registration = registration_of(&engine).await;
    let [early, late, pushed, pulled] = accounts(&engine, 4).await[..] else { unreachable!() };
    engine.set_way(pulled, Some(DeliveryWay::Pull)).await.unwrap();
    for reader in [early, late] {
        for author in [pushed, pulled] {
            engine.follow(reader, author).await.unwrap();
        }
        let wanted = |languages: &[&str]| languages.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        registration.want_languages(reader, pushed, &wanted(&["en"])).await.unwrap();
        registration.want_languages(reader, pulled, &wanted(&["de", "fr"])).await.unwrap();
    }
    drained(&engine).await;
    // It has a home before anything is posted; the other one's is filled afterwards.
    assert_eq!(walk_home(&engine, early, 10).await, []);
    let (mut shown, mut all) = (Vec::new(), Vec::new());
    for author in [pushed, pulled] {
        for language in ["en", "de", "en-GB", "pt", "fr"] {
            let id = says(&engine, author, language).await;
            all.push(id);
            let is_wanted = match author == pushed {
                true => language.starts_with("en"),
                false => ["de", "fr"].contains(&language),
            };
            if is_wanted {
                shown.push(id);
            }
        }
    }
    // Within one millisecond ids go by bucket: what two authors posted stands as the ids say.
    for list in [&mut shown, &mut all] {
        list.sort_unstable_by(|one, other| other.cmp(one));
    }
    drained(&engine).await;
    let chosen = ChosenAuthors::of([pushed, pulled]);
    for engine in [&engine, &second] {
        for reader in [early, late] {
            for limit in [1, 3, 10] {
                assert_eq!(walk_home(engine, reader, limit).await, shown, "{reader}, by {limit}");
            }
            let page = engine.as_reader(reader).read_chosen(&chosen, &Query::home()).await.unwrap();
            assert_eq!(page.ids(), shown);
        }
        let profile = engine.as_reader(early).read(&Query::profile(pushed)).await.unwrap();
        assert_eq!(profile.ids().len(), 5, "there all of them show");
    }
    for author in [pushed, pulled] {
        registration.want_languages(early, author, &[]).await.unwrap();
    }
    assert_eq!(
        registration.document(early, FOLLOW_LANGUAGES).await.unwrap(),
        None,
        "nothing is kept of nobody"
    );
    assert_eq!(walk_home(&second, early, 3).await, all);
    assert_eq!(walk_home(&second, late, 3).await, shown, "it is nobody else's affair");
}

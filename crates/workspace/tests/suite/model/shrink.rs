//! Making a sequence that fails as short as it goes.

use crate::model::acts::{Act, Deed, Wish};
use crate::model::run;

/// So many tries; each takes milliseconds.
const TRIES: usize = 2_000;

/// The shortest sequence found that fails too.
pub(crate) fn shortest(mut acts: Vec<Act>) -> Vec<Act> {
    let mut tries = 0;
    let mut size = acts.len();
    while size > 0 && tries < TRIES {
        let mut at = 0;
        let mut shorter = false;
        while at < acts.len() && tries < TRIES {
            let mut candidate = acts.clone();
            candidate.drain(at..(at + size).min(acts.len()));
            tries += 1;
            if run(&candidate).is_err() {
                (acts, shorter) = (candidate, true);
            } else {
                at += size;
            }
        }
        if !shorter {
            size /= 2;
        }
    }
    simpler(acts, tries)
}

/// Leaves out single wishes and deeds.
fn simpler(mut acts: Vec<Act>, mut tries: usize) -> Vec<Act> {
    loop {
        let mut shorter = false;
        for place in 0..acts.len() {
            for act in without_one(&acts[place]) {
                let mut candidate = acts.clone();
                candidate[place] = act;
                tries += 1;
                if tries < TRIES && run(&candidate).is_err() {
                    (acts, shorter) = (candidate, true);
                    break;
                }
            }
        }
        if !shorter {
            return acts;
        }
    }
}

fn drops<T: Clone>(from: &[T]) -> Vec<Vec<T>> {
    let drop =
        |at| from.iter().enumerate().filter(move |(place, _)| *place != at).map(|(_, item)| item.clone());
    (0..from.len()).map(|at| drop(at).collect()).collect()
}

/// The act with one of its parts left out, each in turn.
fn without_one(act: &Act) -> Vec<Act> {
    let deeds =
        |deeds: &[Deed], make: &dyn Fn(Vec<Deed>) -> Act| drops(deeds).into_iter().map(make).collect();
    let wishes =
        |wishes: &[Wish], make: &dyn Fn(Vec<Wish>) -> Act| drops(wishes).into_iter().map(make).collect();
    match act {
        Act::Edit(number, list) => wishes(list, &|list| Act::Edit(*number, list)),
        Act::CutEdit(number, list, step) => {
            let mut all: Vec<Act> = wishes(list, &|list| Act::CutEdit(*number, list, *step));
            all.push(Act::Edit(*number, list.clone()));
            all
        }
        Act::Command(number, list) => deeds(list, &|list| Act::Command(*number, list)),
        Act::Killed(number, list, saves) => {
            let mut all: Vec<Act> = deeds(list, &|list| Act::Killed(*number, list, saves.clone()));
            all.extend::<Vec<Act>>(deeds(saves, &|saves| Act::Killed(*number, list.clone(), saves)));
            all.push(Act::Command(*number, list.clone()));
            all
        }
        Act::Beside(one, other, list, then) => {
            let mut all: Vec<Act> = deeds(list, &|list| Act::Beside(*one, *other, list, then.clone()));
            all.extend::<Vec<Act>>(deeds(then, &|then| Act::Beside(*one, *other, list.clone(), then)));
            all.push(Act::Command(*one, list.clone()));
            all
        }
        Act::Check(number, list) => deeds(list, &|list| Act::Check(*number, list)),
        Act::Outside(list) => deeds(list, &Act::Outside),
        Act::EditDuring(number, first, list, then) => {
            let mut all: Vec<Act> =
                deeds(first, &|first| Act::EditDuring(*number, first, list.clone(), then.clone()));
            all.extend::<Vec<Act>>(wishes(list, &|list| {
                Act::EditDuring(*number, first.clone(), list, then.clone())
            }));
            all.extend::<Vec<Act>>(deeds(then, &|then| {
                Act::EditDuring(*number, first.clone(), list.clone(), then)
            }));
            all
        }
        Act::CutUndo(target, _) => vec![Act::Undo(target.clone())],
        Act::CutRedo(_) => vec![Act::Redo],
        Act::Undo(_) | Act::Redo | Act::Checkpoint(_) | Act::Compare(_) | Act::Reopen => Vec::new(),
    }
}

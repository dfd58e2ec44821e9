//! Stacks for corosensei.
#![allow(unsafe_code)]

use corosensei::stack::StackPointer;

use crate::pool::Stack;

// SAFETY: a stack has 4 KB at least, both ends are multiples of 16 (a page; a page less some
// lines), and its lowest page is a guard page. Without guard pages, whoever asked for that has
// promised that no fiber grows so far (`Options::huge_without_guards`).
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.top()
    }

    fn limit(&self) -> StackPointer {
        self.low()
    }
}

(** Decays of absolute value at most 1: an affine scan does not let two states drift apart. *)

From Coq Require Import List Reals Lra.
From Assay Require Import Affine.
Import ListNotations.

Local Open Scope R_scope.

Notation apply_real := (apply R Rplus Rmult).
Notation run_real := (run R Rplus Rmult).

Lemma step_nonexpansive : forall a b x y,
  Rabs a <= 1 -> Rabs (apply_real (a, b) x - apply_real (a, b) y) <= Rabs (x - y).
Proof.
  intros a b x y small. unfold apply; simpl.
  replace (a * x + b - (a * y + b)) with (a * (x - y)) by ring. rewrite Rabs_mult.
  pose proof (Rabs_pos (x - y)). nra.
Qed.

(** Two runs with the same inputs are at most as far apart as their initial states. *)
Theorem nonexpansive : forall steps x y,
  (forall a b, In (a, b) steps -> Rabs a <= 1) ->
  Rabs (run_real x steps - run_real y steps) <= Rabs (x - y).
Proof.
  induction steps as [| [a b] steps IH]; intros x y small; [right; reflexivity |].
  apply (Rle_trans _ (Rabs (apply_real (a, b) x - apply_real (a, b) y))).
  - apply IH. intros c d among. apply (small c d). right. exact among.
  - apply step_nonexpansive. apply (small a b). left. reflexivity.
Qed.

(** Affine maps h -> a h + b: the pieces that a linear scan combines.

    Multiplication need not commute, so the theorems hold for numbers, for channels side by side,
    and for square matrices. *)

From Coq Require Import List.
Import ListNotations.

Section Affine.

Variable R : Type.
Variables zero one : R.
Variables add mul : R -> R -> R.
Hypothesis add_assoc : forall x y z, add x (add y z) = add (add x y) z.
Hypothesis add_zero : forall x, add x zero = x.
Hypothesis zero_add : forall x, add zero x = x.
Hypothesis mul_assoc : forall x y z, mul x (mul y z) = mul (mul x y) z.
Hypothesis one_mul : forall x, mul one x = x.
Hypothesis mul_one : forall x, mul x one = x.
Hypothesis mul_zero : forall x, mul x zero = zero.
Hypothesis zero_mul : forall x, mul zero x = zero.
Hypothesis distributive : forall x y z, mul x (add y z) = add (mul x y) (mul x z).

Definition map := (R * R)%type.

Definition apply (f : map) (h : R) : R := add (mul (fst f) h) (snd f).

(** First [earlier], then [later]. *)
Definition compose (later earlier : map) : map :=
  (mul (fst later) (fst earlier), add (mul (fst later) (snd earlier)) (snd later)).

Definition identity : map := (one, zero).

(** The map of a whole sequence, from its first step to its last. *)
Definition summary (steps : list map) : map := fold_left (fun f g => compose g f) steps identity.

(** The steps one after the other. *)
Definition run (h : R) (steps : list map) : R := fold_left (fun h f => apply f h) steps h.

Theorem compose_apply : forall f g h, apply (compose g f) h = apply g (apply f h).
Proof.
  intros [a b] [c d] h. unfold apply, compose; simpl.
  rewrite distributive, mul_assoc, add_assoc. reflexivity.
Qed.

Theorem compose_associative : forall f g k,
  compose (compose k g) f = compose k (compose g f).
Proof.
  intros [a b] [c d] [x y]. unfold compose; simpl.
  rewrite mul_assoc, distributive, mul_assoc, add_assoc. reflexivity.
Qed.

Theorem compose_identity : forall f, compose f identity = f /\ compose identity f = f.
Proof.
  intros [a b]. unfold compose, identity; simpl.
  rewrite mul_one, mul_zero, zero_add, !one_mul, add_zero. split; reflexivity.
Qed.

(** Applying the summary is running the steps one after the other. *)
Theorem summary_is_run : forall steps h, apply (summary steps) h = run h steps.
Proof.
  assert (from : forall steps f h,
    apply (fold_left (fun f g => compose g f) steps f) h = run (apply f h) steps).
  { unfold run; induction steps as [| g steps IH]; intros f h; simpl; [reflexivity |].
    rewrite IH, compose_apply. reflexivity. }
  intros steps h. unfold summary. rewrite from. f_equal.
  unfold apply, identity; simpl. rewrite one_mul, add_zero. reflexivity.
Qed.

(** A factor of 0 starts a new sequence: nothing before it matters. *)
Theorem reset_forgets : forall before b after h,
  run h (before ++ (zero, b) :: after) = run b after.
Proof.
  intros before b after h. unfold run. rewrite fold_left_app. simpl. f_equal.
  unfold apply; simpl. rewrite zero_mul. apply zero_add.
Qed.

End Affine.

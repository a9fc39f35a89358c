(** Which frequencies a spectral layer keeps along one axis of length n with m modes. *)

From Coq Require Import List PeanoNat Lia.
Import ListNotations.

(** The first m and the last m of n. Subtraction of naturals stops at 0, so m > n keeps all. *)
Definition keep (n m k : nat) : bool := (k <? m) || (n - m <=? k).

Definition band (n m : nat) : list nat := filter (keep n m) (seq 0 n).

Lemma keep_iff : forall n m k, keep n m k = true <-> k < m \/ n - m <= k.
Proof.
  intros. unfold keep. rewrite Bool.orb_true_iff, Nat.ltb_lt, Nat.leb_le. reflexivity.
Qed.

Lemma all_kept : forall n m start count,
  (forall k, start <= k < start + count -> keep n m k = true) ->
  length (filter (keep n m) (seq start count)) = count.
Proof.
  intros n m start count; revert start.
  induction count as [| count IH]; intros start every; simpl; [reflexivity |].
  rewrite every by lia. simpl. rewrite IH; [reflexivity |]. intros k inside. apply every. lia.
Qed.

Lemma none_kept : forall n m start count,
  (forall k, start <= k < start + count -> keep n m k = false) ->
  length (filter (keep n m) (seq start count)) = 0.
Proof.
  intros n m start count; revert start.
  induction count as [| count IH]; intros start every; simpl; [reflexivity |].
  rewrite every by lia. apply IH. intros k inside. apply every. lia.
Qed.

(** The band has min(2m, n) members. *)
Theorem band_count : forall n m, length (band n m) = Nat.min (2 * m) n.
Proof.
  intros n m. unfold band. destruct (Nat.le_gt_cases n (2 * m)) as [meet | apart].
  - rewrite all_kept; [lia |]. intros k inside. apply keep_iff. lia.
  - replace n with (m + ((n - 2 * m) + m)) at 2 by lia.
    rewrite !seq_app, !filter_app, !app_length.
    rewrite (all_kept _ _ 0 m), none_kept, all_kept; [lia | | |].
    + intros k inside. apply keep_iff. lia.
    + intros k inside. destruct (keep n m k) eqn:kept; [| reflexivity].
      apply keep_iff in kept. lia.
    + intros k inside. apply keep_iff. lia.
Qed.

(** Every frequency is kept exactly when the two ends meet. *)
Theorem band_covers : forall n m, (forall k, k < n -> keep n m k = true) <-> n <= 2 * m.
Proof.
  intros n m; split.
  - intros every. destruct (Nat.le_gt_cases n (2 * m)) as [meet | apart]; [exact meet |].
    assert (inside : m < n) by lia. apply every, keep_iff in inside. lia.
  - intros meet k inside. apply keep_iff. lia.
Qed.

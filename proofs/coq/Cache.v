(** The key/value cache: preallocated slots, of which the first [length] are in use. *)

From Coq Require Import List PeanoNat Bool Lia.
Import ListNotations.

(** Query i of a chunk that starts at position [offset] sees key j. *)
Definition visible (offset i j : nat) : bool := j <=? offset + i.

Section Cache.

Variable A : Type.

Record cache := Cache { slots : list A; used : nat }.

Definition content (c : cache) : list A := firstn (used c) (slots c).

(** A chunk is written behind what is in use; one that does not fit is refused. *)
Definition append (c : cache) (chunk : list A) : option cache :=
  if used c + length chunk <=? length (slots c) then
    Some (Cache
      (firstn (used c) (slots c) ++ chunk ++ skipn (used c + length chunk) (slots c))
      (used c + length chunk))
  else None.

(** The capacity stays, and the length advances by the chunk's. *)
Theorem append_sizes : forall c chunk after, append c chunk = Some after ->
  length (slots after) = length (slots c) /\ used after = used c + length chunk.
Proof.
  intros c chunk after. unfold append.
  destruct (Nat.leb_spec (used c + length chunk) (length (slots c)));
    [| discriminate]. intros same; injection same as <-; simpl.
  rewrite !app_length, firstn_length, skipn_length. lia.
Qed.

(** What is in use afterwards is what was, followed by the chunk. *)
Theorem append_content : forall c chunk after,
  append c chunk = Some after -> content after = content c ++ chunk.
Proof.
  intros c chunk after. unfold append.
  destruct (Nat.leb_spec (used c + length chunk) (length (slots c)));
    [| discriminate]. intros same; injection same as <-. unfold content; simpl.
  rewrite app_assoc. rewrite firstn_app, app_length, firstn_length, Nat.min_l by lia.
  rewrite Nat.sub_diag, app_nil_r. apply firstn_all2.
  rewrite app_length, firstn_length. lia.
Qed.

(** No slot in use is changed by later chunks. *)
Theorem earlier_slots_kept : forall c chunk after j d,
  append c chunk = Some after -> j < used c -> nth j (slots after) d = nth j (slots c) d.
Proof.
  intros c chunk after j d. unfold append.
  destruct (Nat.leb_spec (used c + length chunk) (length (slots c)));
    [| discriminate]. intros same early; injection same as <-; simpl.
  rewrite app_nth1 by (rewrite firstn_length; lia).
  rewrite <- (firstn_skipn (used c) (slots c)) at 2.
  rewrite app_nth1 by (rewrite firstn_length; lia). reflexivity.
Qed.

(** A chunk is refused exactly when it does not fit. *)
Theorem refused_iff_full : forall c chunk,
  append c chunk = None <-> length (slots c) < used c + length chunk.
Proof.
  intros. unfold append. destruct (Nat.leb_spec (used c + length chunk) (length (slots c)));
    split; intros; try discriminate; try reflexivity; lia.
Qed.

(** Two chunks one after the other are the two as one chunk. *)
Theorem append_twice : forall c first second middle after,
  append c first = Some middle -> append middle second = Some after ->
  exists once, append c (first ++ second) = Some once /\ content once = content after.
Proof.
  intros c first second middle after one two.
  destruct (append c (first ++ second)) as [once |] eqn:joined.
  - exists once. split; [reflexivity |].
    rewrite (append_content _ _ _ joined), (append_content _ _ _ two), (append_content _ _ _ one).
    apply app_assoc.
  - exfalso. apply refused_iff_full in joined. rewrite app_length in joined.
    destruct (append_sizes _ _ _ one) as [capacity length_].
    assert (fits : append middle second <> None) by congruence.
    rewrite refused_iff_full in fits. lia.
Qed.

End Cache.

Arguments Cache {A} slots used.

(** Query i of a chunk sees the keys that its row of the full run sees, whatever n of them exist. *)
Theorem cached_visible_set : forall start count n i,
  i < count -> start + count <= n ->
  filter (visible start i) (seq 0 (start + count)) = filter (visible 0 (start + i)) (seq 0 n).
Proof.
  intros start count n i row fits.
  replace n with ((start + count) + (n - (start + count))) by lia.
  rewrite (seq_app (start + count)), filter_app.
  replace (filter (visible 0 (start + i)) (seq (0 + (start + count)) (n - (start + count))))
    with (@nil nat).
  - rewrite app_nil_r. reflexivity.
  - symmetry. assert (late : forall k count', start + i < k ->
      filter (visible 0 (start + i)) (seq k count') = []).
    { intros k count'; revert k. induction count' as [| c IH]; intros k later; [reflexivity |].
      simpl. unfold visible at 1. destruct (Nat.leb_spec k (0 + (start + i))); [lia |].
      apply IH. lia. }
    apply late. lia.
Qed.

(** Decoding with kept inputs is computing every prefix anew, for any function of a prefix. *)
Section Decoding.

Variables Token Output : Type.
Variable f : list Token -> Output.

Fixpoint decode (kept : list Token) (tokens : list Token) : list Output :=
  match tokens with [] => [] | t :: rest => f (kept ++ [t]) :: decode (kept ++ [t]) rest end.

Theorem decode_equals_recomputation : forall tokens kept,
  decode kept tokens = map (fun t => f (kept ++ firstn (S t) tokens)) (seq 0 (length tokens)).
Proof.
  induction tokens as [| t tokens IH]; intros kept; [reflexivity |].
  change (f (kept ++ [t]) :: decode (kept ++ [t]) tokens
    = map (fun t0 => f (kept ++ firstn (S t0) (t :: tokens))) (0 :: seq 1 (length tokens))).
  rewrite map_cons, IH, <- seq_shift, map_map. f_equal.
  apply map_ext. intros k. rewrite <- app_assoc. reflexivity.
Qed.

End Decoding.

(** One query's attention to any number of keys: masked softmax of its scores, applied to values. *)

From Coq Require Import List PeanoNat Permutation Reals Lra Lia.
From Assay Require Import Softmax Online.
Import ListNotations.

(** Query i of a chunk at [offset] sees the keys 0 ... offset + i; [j] is the first key's index. *)
Fixpoint causal {K} (offset i j : nat) (pairs : list (number K * number K)) : list (key K) :=
  match pairs with
  | [] => []
  | (s, v) :: rest => ((s, j <=? offset + i), v) :: causal offset i (S j) rest
  end.

Definition causal_attend {K} (offset i : nat) (pairs : list (number K * number K)) : number K :=
  attend (row_max (map scored (causal offset i 0 pairs))) (causal offset i 0 pairs).

(** Scores and values after the query's position have no influence, in any arithmetic. *)
Theorem future_zero : forall K offset i (x y : list (number K * number K)),
  length x = length y -> firstn (S (offset + i)) x = firstn (S (offset + i)) y ->
  causal_attend offset i x = causal_attend offset i y.
Proof.
  intros K offset i x y size same. apply blocked_keys_independent.
  assert (general : forall x y j, length x = length y ->
    firstn (S (offset + i) - j) x = firstn (S (offset + i) - j) y ->
    agree_keys (causal (K := K) offset i j x) (causal offset i j y)).
  { clear. induction x as [| [s v] x IH]; intros [| [t w] y] j size same;
      simpl in size; try discriminate; [constructor |].
    injection size as size. simpl. constructor.
    - split; [reflexivity |]. simpl. intros early. apply Nat.leb_le in early.
      replace (S (offset + i) - j) with (S (offset + i - j)) in same by lia.
      simpl in same. injection same as -> -> _. reflexivity.
    - apply IH; [exact size |].
      destruct (Nat.le_gt_cases j (offset + i)) as [early | late].
      + replace (S (offset + i) - j) with (S (S (offset + i) - S j)) in same by lia.
        simpl in same. injection same as _ _ same. exact same.
      + replace (S (offset + i) - S j) with 0 by lia. reflexivity. }
  apply general; [exact size |]. rewrite Nat.sub_0_r. exact same.
Qed.

Local Open Scope R_scope.

(** What is subtracted before the exponential does not matter. *)
Lemma attend_any_top : forall a b (keys : list real_key), attend a keys = attend b keys.
Proof.
  intros a b keys. rewrite <- (app_nil_r keys). change (keys ++ []) with (concat [keys]).
  rewrite <- !online_equals_direct. reflexivity.
Qed.

(** A query that sees no key gets 0. *)
Theorem empty_row : forall m (keys : list real_key),
  seen (map scored keys) = false -> attend m keys = 0.
Proof.
  intros m keys none. rewrite attend_ratio.
  destruct (nothing_summarised m keys none) as [_ ->]. unfold Rdiv. apply Rmult_0_l.
Qed.

Lemma seen_app : forall x y : list (entry reals), seen (x ++ y) = (seen x || seen y)%bool.
Proof. intros. apply existsb_app. Qed.

(** Blocked keys that are appended, as padding of a tile is, change nothing. *)
Theorem tile_independent : forall m (keys extra : list real_key),
  seen (map scored extra) = false -> attend m (keys ++ extra) = attend m keys.
Proof.
  intros m keys extra none. rewrite !attend_ratio, keys_acc_app.
  destruct (nothing_summarised m extra none) as [mass acc]. rewrite acc, Rplus_0_r. f_equal.
  unfold divisor. fold (keys_mass m (keys ++ extra)). fold (keys_mass m keys).
  rewrite keys_mass_app, mass, Rplus_0_r, map_app, seen_app, none, Bool.orb_false_r. reflexivity.
Qed.

Lemma causal_split : forall offset i n j (pairs : list (R * R)),
  causal (K := reals) offset i j pairs
  = causal offset i j (firstn n pairs) ++ causal offset i (j + n) (skipn n pairs).
Proof.
  intros offset i n; induction n as [| n IH]; intros j [| [s v] pairs]; simpl; try reflexivity.
  - rewrite Nat.add_0_r. reflexivity.
  - rewrite (IH (S j)). rewrite <- plus_n_Sm. reflexivity.
Qed.

Lemma future_unseen : forall offset i j (pairs : list (R * R)),
  (offset + i < j)%nat -> seen (map scored (causal (K := reals) offset i j pairs)) = false.
Proof.
  intros offset i j pairs; revert j. induction pairs as [| [s v] pairs IH]; intros j late;
    [reflexivity |].
  change (((j <=? offset + i) || seen (map scored (causal (K := reals) offset i (S j) pairs)))%bool
    = false).
  rewrite (IH (S j)) by lia. destruct (Nat.leb_spec j (offset + i)); [lia | reflexivity].
Qed.

Lemma causal_position : forall offset i j (pairs : list (R * R)),
  causal (K := reals) offset i j pairs = causal 0 (offset + i) j pairs.
Proof.
  intros offset i j pairs; revert j. induction pairs as [| [s v] pairs IH]; intros j; simpl;
    [reflexivity |].
  rewrite (IH (S j)). reflexivity.
Qed.

(** A row of a chunk at [offset], which has only its own keys, is that row of the whole run. *)
Theorem offset_rows : forall a b offset i count (pairs : list (R * R)),
  (i < count)%nat ->
  attend a (causal (K := reals) offset i 0 (firstn (offset + count) pairs))
  = attend b (causal (K := reals) 0 (offset + i) 0 pairs).
Proof.
  intros a b offset i count pairs inside.
  rewrite (causal_split 0 (offset + i) (offset + count) 0 pairs).
  rewrite tile_independent by (apply future_unseen; lia).
  rewrite causal_position. apply attend_any_top.
Qed.

(** Running a prefix alone gives the prefix of the whole run. *)
Theorem prefix_rows : forall a b i count (pairs : list (R * R)),
  (i < count)%nat ->
  attend a (causal (K := reals) 0 i 0 (firstn count pairs))
  = attend b (causal (K := reals) 0 i 0 pairs).
Proof. intros a b i count pairs inside. exact (offset_rows a b 0 i count pairs inside). Qed.

(** The output lies between bounds of the visible values. *)
Theorem convex : forall m lo hi (keys : list real_key),
  seen (map scored keys) = true ->
  (forall s v, In ((s, true), v) keys -> lo <= v <= hi) ->
  lo <= attend m keys <= hi.
Proof.
  intros m lo hi keys some bounds. rewrite attend_ratio. unfold divisor. rewrite some.
  pose proof (mass_positive m _ some) as positive. fold (keys_mass m keys) in *.
  assert (shares : lo * keys_mass m keys <= keys_acc m keys <= hi * keys_mass m keys).
  { clear some positive. unfold keys_mass, keys_acc, contract.
    induction keys as [| [[s a] v] keys IH]; simpl in *; [lra |].
    assert (rest : forall s v, In ((s, true), v) keys -> lo <= v <= hi).
    { intros t w among. apply (bounds t w). right. exact among. }
    specialize (IH rest). unfold weighted at 1 3; simpl. destruct a; [| lra].
    assert (here : lo <= v <= hi) by (apply (bounds s v); left; reflexivity).
    pose proof (exp_pos (s - m)). nra. }
  split; apply (Rmult_le_reg_r (keys_mass m keys)); try exact positive;
    unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.

(** The order of the keys does not matter. *)
Theorem key_permutation : forall m (x y : list real_key),
  Permutation x y -> attend m x = attend m y.
Proof.
  intros m x y moved. rewrite !attend_ratio. unfold divisor.
  fold (keys_mass m x). fold (keys_mass m y).
  assert (same : keys_mass m x = keys_mass m y /\ keys_acc m x = keys_acc m y
    /\ seen (map scored x) = seen (map scored y)).
  { induction moved as [| k x y _ [masses [accs found]] | k l x | x y z _ IH1 _ IH2].
    - repeat split.
    - unfold keys_mass, keys_acc, contract, seen in *. simpl in *.
      rewrite masses, accs, found. repeat split.
    - unfold keys_mass, keys_acc, contract, seen. simpl. repeat split; try lra.
      rewrite !Bool.orb_assoc. f_equal. apply Bool.orb_comm.
    - destruct IH1 as [m1 [a1 s1]], IH2 as [m2 [a2 s2]]. repeat split; congruence. }
  destruct same as [-> [-> ->]]. reflexivity.
Qed.

(** The output is linear in the values. *)
Definition with_values (f : R -> R -> R) (keys : list (entry reals * (R * R))) : list real_key :=
  map (fun k => (fst k, (f (fst (snd k)) (snd (snd k)) : number reals))) keys.

Theorem linear_in_v : forall m c (keys : list (entry reals * (R * R))),
  attend m (with_values (fun v w => v + c * w) keys)
  = attend m (with_values (fun v _ => v) keys) + c * attend m (with_values (fun _ w => w) keys).
Proof.
  intros m c keys. rewrite !attend_ratio.
  assert (rows : forall f, map scored (with_values f keys) = map fst keys).
  { intros f. unfold with_values. rewrite map_map. reflexivity. }
  rewrite !rows.
  assert (accs : keys_acc m (with_values (fun v w => v + c * w) keys)
    = keys_acc m (with_values (fun v _ => v) keys)
      + c * keys_acc m (with_values (fun _ w => w) keys)).
  { clear rows. unfold keys_acc, contract.
    induction keys as [| [[s a] [v w]] keys IH]; simpl in *; [lra |].
    rewrite IH. unfold weighted; simpl. destruct a; lra. }
  rewrite accs. unfold Rdiv. simpl. ring.
Qed.

(** ** The gradient into the values: dv_j = sum_i w_ij do_i *)

Fixpoint plus {K} (x y : list (number K)) : list (number K) :=
  match x, y with a :: x, b :: y => add K a b :: plus x y | _, _ => [] end.

(** Rows of scores over the same n keys, each with what is subtracted and its cotangent. *)
Fixpoint value_gradient {K} (n : nat) (rows : list (number K * list (entry K) * number K))
  : list (number K) :=
  match rows with
  | [] => repeat (zero K) n
  | (top, row, g) :: rest =>
      plus (map (fun w => mul K w g) (weights top row)) (value_gradient n rest)
  end.

Notation real_rows := (list (number reals * real_row * number reals)).

Lemma weights_length : forall top (row : real_row), length (weights top row) = length row.
Proof. intros. unfold weights, exponentials. rewrite !map_length. reflexivity. Qed.

Lemma plus_length : forall x y : list (number reals),
  length x = length y -> length (plus x y) = length y.
Proof.
  induction x as [| a x IH]; intros [| b y] size; simpl in *; try discriminate; [reflexivity |].
  injection size as size. rewrite (IH y size). reflexivity.
Qed.

Lemma gradient_length : forall n (rows : real_rows),
  (forall top row g, In (top, row, g) rows -> length row = n) ->
  length (value_gradient n rows) = n.
Proof.
  intros n rows. induction rows as [| [[top row] g] rows IH]; intros sizes; simpl.
  - apply repeat_length.
  - assert (rest : length (value_gradient n rows) = n).
    { apply IH. intros t r h among. apply (sizes t r h). right. exact among. }
    rewrite plus_length; [exact rest |].
    rewrite map_length, weights_length, rest. apply (sizes top row g). left. reflexivity.
Qed.

Lemma sum_plus : forall x y : list (number reals), length x = length y ->
  sum (plus x y) = sum x + sum y.
Proof.
  induction x as [| a x IH]; intros [| b y] size; simpl in *; try discriminate; [lra |].
  injection size as size. rewrite (IH y size). lra.
Qed.

(** Where every row sees a key, the gradients of the values sum to the cotangents' sum. *)
Theorem value_mass : forall n (rows : real_rows),
  (forall top row g, In (top, row, g) rows -> length row = n /\ seen row = true) ->
  sum (K := reals) (value_gradient n rows) = sum (K := reals) (map snd rows).
Proof.
  intros n rows. induction rows as [| [[top row] g] rows IH]; intros each.
  - simpl. clear. induction n as [| n IH]; simpl in *; lra.
  - assert (rest : forall t r h, In (t, r, h) rows -> length r = n /\ seen r = true).
    { intros t r h among. apply (each t r h). right. exact among. }
    destruct (each top row g) as [size some]; [left; reflexivity |].
    simpl value_gradient. rewrite sum_plus, sum_scaled, row_sum, some, (IH rest).
    + simpl. lra.
    + rewrite map_length, weights_length, gradient_length; [exact size |].
      intros t r h among. apply (rest t r h among).
Qed.

Lemma nth_plus : forall (x y : list (number reals)) j,
  nth_error x j = Some (zero reals) -> nth_error y j = Some (zero reals) ->
  nth_error (plus x y) j = Some (zero reals).
Proof.
  induction x as [| a x IH]; intros [| b y] [| j] left_ right_; simpl in *; try discriminate.
  - injection left_ as ->. injection right_ as ->. rewrite Rplus_0_r. reflexivity.
  - apply IH; assumption.
Qed.

(** A value that no query sees gets a gradient of 0. *)
Theorem unseen_value_zero_gradient : forall n j (rows : real_rows),
  (j < n)%nat ->
  (forall top row g, In (top, row, g) rows -> exists s, nth_error row j = Some (s, false)) ->
  nth_error (value_gradient n rows) j = Some 0.
Proof.
  intros n j rows inside. induction rows as [| [[top row] g] rows IH]; intros blocked; simpl.
  - rewrite (nth_error_nth' _ 0) by (rewrite repeat_length; exact inside).
    f_equal. apply nth_repeat.
  - apply nth_plus.
    + destruct (blocked top row g) as [s at_j]; [left; reflexivity |].
      apply (blocked_zero top), (map_nth_error (fun w => mul reals w g)) in at_j.
      replace (zero reals) with (mul reals 0 g) by apply Rmult_0_l. exact at_j.
    + apply IH. intros t r h among. apply (blocked t r h). right. exact among.
Qed.

(** Online softmax: the row is read block by block, with running maximum, mass and sum of values. *)

From Coq Require Import List Reals Lra.
From Assay Require Import Softmax.
Import ListNotations.

Section Definitions.

Variable K : arithmetic.

(** One key: its score, whether it is allowed, and its value. *)
Definition key := (number K * bool * number K)%type.
Definition scored (k : key) : entry K := fst k.

Definition weighted (e : number K) (k : key) : number K :=
  if snd (fst k) then mul K e (snd k) else zero K.

(** sum over allowed keys of e_j v_j *)
Definition contract (es : list (number K)) (keys : list key) : number K :=
  sum (map (fun p => weighted (fst p) (snd p)) (combine es keys)).

(** Masked softmax applied to the values, directly. *)
Definition attend (top : number K) (keys : list key) : number K :=
  contract (weights top (map scored keys)) keys.

Record state := State { top : number K; mass : number K; acc : number K; some : bool }.

Definition start : state := State (zero K) (zero K) (zero K) false.

Definition merged_top (a : number K) (in_a : bool) (b : number K) (in_b : bool) : number K :=
  if in_a then (if in_b then maximum K a b else a) else b.

Definition step (s : state) (block : list key) : state :=
  let row := map scored block in
  let m := merged_top (top s) (some s) (row_max row) (seen row) in
  let rescale := if some s then exponential K (sub K (top s) m) else zero K in
  let es := exponentials m row in
  State m
    (add K (mul K rescale (mass s)) (sum es))
    (add K (mul K rescale (acc s)) (contract es block))
    (some s || seen row).

Definition finish (s : state) : number K := div K (acc s) (if some s then mass s else one K).

Definition online (blocks : list (list key)) : number K := finish (fold_left step blocks start).

(** Keys and values that hold the same where the mask allows them. *)
Definition agree_keys : list key -> list key -> Prop :=
  Forall2 (fun x y => snd (fst x) = snd (fst y) /\ (snd (fst x) = true -> x = y)).

(** Blocked keys and values have no influence on the output, in any arithmetic. *)
Theorem blocked_keys_independent : forall x y, agree_keys x y ->
  attend (row_max (map scored x)) x = attend (row_max (map scored y)) y.
Proof.
  intros x y same.
  assert (rows : agree (map scored x) (map scored y)).
  { induction same as [| [[s a] v] [[t b] w] x y [masks equal] _ IH]; simpl; constructor.
    - simpl in *. split; [exact masks |]. intros allowed. specialize (equal allowed). congruence.
    - exact IH. }
  unfold attend. pose proof (blocked_independent K _ _ rows) as weights_same.
  unfold masked_softmax in weights_same. rewrite weights_same.
  generalize (weights (row_max (map scored y)) (map scored y)) as es. clear - same.
  unfold contract. induction same as [| [[s a] v] [[t b] w] x y [masks equal] _ IH]; intros es.
  - reflexivity.
  - destruct es as [| e es]; [reflexivity |]. simpl. specialize (IH es). simpl in *.
    rewrite IH. f_equal. unfold weighted; simpl in *. subst b. destruct a; [| reflexivity].
    specialize (equal eq_refl). congruence.
Qed.

End Definitions.

Arguments scored {K} k.
Arguments contract {K} es keys.
Arguments attend {K} top keys.
Arguments start {K}.
Arguments step {K} s block.
Arguments finish {K} s.
Arguments online {K} blocks.
Arguments agree_keys {K} x y.
Arguments State {K} top mass acc some.
Arguments top {K} s.
Arguments mass {K} s.
Arguments acc {K} s.
Arguments some {K} s.

Local Open Scope R_scope.

Notation real_key := (key reals).

Lemma contract_scaled : forall c (es : list R) (keys : list real_key),
  contract (map (fun e => e * c) es) keys = contract es keys * c.
Proof.
  unfold contract; intros c es; induction es as [| e es IH]; intros [| [[s a] v] keys];
    simpl in *; try real_ring.
  rewrite IH. unfold weighted; simpl. destruct a; real_ring.
Qed.

Lemma contract_zeros : forall (keys xs : list real_key),
  contract (map (fun _ => 0) xs) keys = 0.
Proof.
  unfold contract; intros keys xs; revert keys.
  induction xs as [| x xs IH]; intros [| [[s a] v] keys]; simpl in *; try reflexivity.
  rewrite IH. unfold weighted; simpl. destruct a; real_ring.
Qed.

(** Exponentials relative to another maximum differ by a factor. *)
Lemma exponentials_moved : forall old new (row : list (entry reals)),
  exponentials new row = map (fun e => e * exp (old - new)) (exponentials old row).
Proof.
  intros old new row; induction row as [| [s a] row IH]; simpl in *; [reflexivity |].
  rewrite IH. f_equal. destruct a; [| real_ring]. rewrite <- exp_plus. f_equal. ring.
Qed.

Definition keys_mass (m : R) (keys : list real_key) : R := sum (exponentials m (map scored keys)).
Definition keys_acc (m : R) (keys : list real_key) : R :=
  contract (exponentials m (map scored keys)) keys.

Lemma sum_app : forall xs ys : list R,
  sum (K := reals) (xs ++ ys) = sum (K := reals) xs + sum (K := reals) ys.
Proof. induction xs as [| x xs IH]; intros ys; simpl in *; [real_ring | rewrite IH; real_ring]. Qed.

Lemma keys_mass_app : forall m x y, keys_mass m (x ++ y) = keys_mass m x + keys_mass m y.
Proof.
  intros. unfold keys_mass, exponentials. rewrite !map_app. apply sum_app.
Qed.

Lemma keys_acc_app : forall m x y, keys_acc m (x ++ y) = keys_acc m x + keys_acc m y.
Proof.
  intros m x y. unfold keys_acc, contract.
  induction x as [| [[s a] v] x IH]; simpl in *; [real_ring | rewrite IH; real_ring].
Qed.

Lemma keys_mass_moved : forall old new keys,
  keys_mass new keys = keys_mass old keys * exp (old - new).
Proof.
  intros. unfold keys_mass. rewrite (exponentials_moved old new). apply sum_scaled.
Qed.

Lemma keys_acc_moved : forall old new keys,
  keys_acc new keys = keys_acc old keys * exp (old - new).
Proof.
  intros. unfold keys_acc. rewrite (exponentials_moved old new). apply contract_scaled.
Qed.

Lemma attend_ratio : forall m keys,
  attend m keys = keys_acc m keys / divisor m (map scored keys).
Proof. intros m keys. exact (contract_scaled (/ divisor m (map scored keys)) _ keys). Qed.

(** What the state knows after the keys so far. *)
Definition summarises (s : state reals) (keys : list real_key) : Prop :=
  mass s = keys_mass (top s) keys /\ acc s = keys_acc (top s) keys
  /\ some s = seen (map scored keys).

Lemma nothing_summarised : forall m keys, seen (map scored keys) = false ->
  keys_mass m keys = 0 /\ keys_acc m keys = 0.
Proof.
  intros m keys none. unfold keys_mass, keys_acc. rewrite (nothing_seen m _ none). split.
  - clear. induction keys as [| k keys IH]; simpl in *; [reflexivity | lra].
  - rewrite map_map. apply contract_zeros.
Qed.

Lemma step_summarises : forall s keys block,
  summarises s keys -> summarises (step s block) (keys ++ block).
Proof.
  intros s keys block [masses [accs any]]. unfold summarises, step. cbv zeta. simpl.
  set (m := merged_top reals _ _ _ _). repeat split.
  - rewrite keys_mass_app. f_equal. rewrite masses. destruct (some s) eqn:was.
    + rewrite (keys_mass_moved (top s) m). real_ring.
    + destruct (nothing_summarised m keys) as [-> _]; [congruence | real_ring].
  - rewrite keys_acc_app. f_equal. rewrite accs. destruct (some s) eqn:was.
    + rewrite (keys_acc_moved (top s) m). real_ring.
    + destruct (nothing_summarised m keys) as [_ ->]; [congruence | real_ring].
  - rewrite any. unfold seen. rewrite map_app, existsb_app. reflexivity.
Qed.

(** Reading blocks of any sizes, with nothing allowed in some, is the direct form; whatever is
    subtracted there. *)
Theorem online_equals_direct : forall (blocks : list (list real_key)) other,
  online blocks = attend other (concat blocks).
Proof.
  assert (runs : forall blocks s keys, summarises s keys ->
    summarises (fold_left step blocks s) (keys ++ concat blocks)).
  { induction blocks as [| block blocks IH]; intros s keys before; simpl.
    - rewrite app_nil_r. exact before.
    - rewrite app_assoc. apply IH, step_summarises, before. }
  intros blocks other. specialize (runs blocks start []). simpl in runs.
  destruct runs as [masses [accs any]]; [repeat split |].
  rewrite attend_ratio. unfold online, finish, divisor. rewrite masses, accs, any.
  set (m := top (fold_left step blocks start)). set (keys := concat blocks).
  fold (keys_mass other keys).
  destruct (seen (map scored keys)) eqn:found.
  - rewrite (keys_acc_moved other m), (keys_mass_moved other m).
    pose proof (mass_positive other _ found) as positive. fold (keys_mass other keys) in positive.
    pose proof (exp_pos (other - m)). simpl. field. lra.
  - destruct (nothing_summarised m keys found) as [_ ->].
    destruct (nothing_summarised other keys found) as [_ ->]. simpl. field.
Qed.

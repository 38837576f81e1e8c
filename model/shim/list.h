/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's lists, as far as x86's MMU needs them. Some are on the stack, so stores have no mark here unless the
 * function is RCU's.
 */
#ifndef S2_LIST_H
#define S2_LIST_H
struct list_head { struct list_head *next, *prev; };
struct hlist_node { struct hlist_node *next, **pprev; };
struct hlist_head { struct hlist_node *first; };

#define LIST_HEAD(n)		struct list_head n = { &(n), &(n) }
#define list_entry(p, t, m)	container_of(p, t, m)
#define list_first_entry(h, t, m) list_entry((h)->next, t, m)
#define list_next_entry(p, m)	list_entry((p)->m.next, __typeof__(*(p)), m)
#define list_prev_entry(p, m)	list_entry((p)->m.prev, __typeof__(*(p)), m)
#define list_entry_is_head(p, h, m) (&(p)->m == (h))
#define list_for_each_entry(p, h, m)						\
	for (p = list_entry((h)->next, __typeof__(*p), m); &p->m != (h); p = list_next_entry(p, m))
#define list_for_each_entry_safe(p, n, h, m)					\
	for (p = list_entry((h)->next, __typeof__(*p), m), n = list_next_entry(p, m); &p->m != (h);	\
	     p = n, n = list_next_entry(n, m))
#define list_for_each_entry_safe_reverse(p, n, h, m)				\
	for (p = list_entry((h)->prev, __typeof__(*p), m), n = list_prev_entry(p, m); &p->m != (h);	\
	     p = n, n = list_prev_entry(n, m))
/* As rcu_dereference(): an address dependency. */
#define list_for_each_entry_rcu(p, h, m)					\
	for (p = list_entry(rcu_dereference((h)->next), __typeof__(*p), m); &p->m != (h);		\
	     p = list_entry(rcu_dereference(p->m.next), __typeof__(*p), m))
#define hlist_entry_safe(p, t, m) ({ struct hlist_node *_p = (p); _p ? container_of(_p, t, m) : NULL; })
#define hlist_for_each_entry(p, h, m)						\
	for (p = hlist_entry_safe((h)->first, __typeof__(*p), m); p; p = hlist_entry_safe(p->m.next, __typeof__(*p), m))

static inline void INIT_LIST_HEAD(struct list_head *h) { h->next = h->prev = h; }
static inline bool list_empty(const struct list_head *h) { return h->next == h; }

static inline void list_add(struct list_head *new, struct list_head *head)
{
	head->next->prev = new;
	new->next = head->next;
	new->prev = head;
	head->next = new;
}
static inline void list_add_tail(struct list_head *new, struct list_head *head) { list_add(new, head->prev); }

static inline void list_add_rcu(struct list_head *new, struct list_head *head)
{
	struct list_head *next = head->next;

	new->next = next;
	new->prev = head;
	smp_store_release(&head->next, new);
	next->prev = new;
}

static inline void list_del_rcu(struct list_head *e)
{
	e->next->prev = e->prev;
	WRITE_ONCE(e->prev->next, e->next);
}
static inline void list_del(struct list_head *e)
{
	e->next->prev = e->prev;
	e->prev->next = e->next;
	e->next = NULL;
}
static inline void list_move(struct list_head *e, struct list_head *head)
{
	list_del(e);
	list_add(e, head);
}

static inline void hlist_add_head(struct hlist_node *n, struct hlist_head *h)
{
	n->next = h->first;
	if (n->next)
		n->next->pprev = &n->next;
	h->first = n;
	n->pprev = &h->first;
}
static inline void hlist_del(struct hlist_node *n)
{
	*n->pprev = n->next;
	if (n->next)
		n->next->pprev = n->pprev;
}
#endif

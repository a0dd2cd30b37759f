/* Keys of a choice of GPUs, one row each. How a row reads is said in keys_list.h. */
#ifndef FT_REQUEST_KEYS_CHOOSE_H
#define FT_REQUEST_KEYS_CHOOSE_H

#define FT_CHOOSE_KEYS(FLAG, PLAIN)                                                                                    \
    FLAG(CHOOSE_TOKENS, "tokens", REAL, 1, 1e18, NO_WORDS, DEPENDS, "tokens", 0, "N", CHOOSE,                          \
      "tokens of the whole run", "required: tokens of the whole run")                                                  \
    PLAIN(CHOOSE_GPU, "gpu", GPUS, 0, 0, NO_WORDS, DEPENDS,                                                            \
      "a name or a list of names; left out: `a100_sxm_80gb`, `h100_sxm`, `h200_sxm`, `b200_sxm`")                      \
    FLAG(CHOOSE_GPUS, "gpus", ANY, 0, 0, NO_WORDS, DEPENDS, "gpus", 0, "N|FROM:TO", CHOOSE,                            \
      "GPUs to try: 8:512 is 8, 16, 32, ... [8:1024]",                                                                 \
      "`\"8:1024\"`: 8, 16, 32, …; a number or a list of numbers")                                                     \
    PLAIN(CHOOSE_GLOBAL, "global_batch", WHOLE, 1, LARGEST_SIZE, NO_WORDS, DEPENDS,                                    \
      "sequences per step, the same for every number of GPUs; left out: about 4 Mi tokens")                            \
    FLAG(DEADLINE, "deadline", ANY, 0, 0, NO_WORDS, DEPENDS, "deadline", 0, "TIME", CHOOSE,                            \
      "the longest the run may take: 30d, 12h", "none; a time, `\"30d\"`, `\"12h\"`; a bare number is days")           \
    FLAG(CHOOSE_BUDGET, "budget", REAL, 0, 1e15, NO_WORDS, DEPENDS, "budget", 0, "USD", CHOOSE,                        \
      "the most it may cost, in dollars; for a service at --rate, per hour",                                           \
      "none; the most it may cost, in dollars; for a service at a `rate`, per hour")                                   \
    FLAG(PROVIDER, "provider", TEXTS, 0, 0, NO_WORDS, DEPENDS, "provider", 0, "LIST", CHOOSE,                          \
      "only these clouds: aws,lambda",                                                                                 \
      "any; a name or a list: `aws`, `azure`, `gcp`, `oci`, `lambda`, `nebius`, … (`data/prices`)")                    \
    FLAG(OWN_PRICE, "price", ANY, 0, 0, NO_WORDS, DEPENDS, "price", 0, "GPU=USD[,...]", CHOOSE,                        \
      "your own price of a GPU-hour: h100_sxm=2.1",                                                                    \
      "`{\"h100_sxm\": 2.1}`: dollars per GPU-hour by GPU, instead of cloud prices")                                   \
    FLAG(PRICING, "pricing", WORD, 0, 0, WORDS(pricing), 0, "pricing", 0, NULL, CHOOSE, "which prices",                \
      "`on_demand`, `spot`, `reserved`: which prices")                                                                 \
    FLAG(FAILURES, "failures", SECTION, 0, 0, NO_WORDS, DEPENDS, "failures", 0, "none|KEY=X[,...]", CHOOSE,            \
      "rate per node and day, restart, save: rate=4e-3,restart=10min,save=20s",                                        \
      "what clusters report; `\"none\"`; `{\"rate\": 4e-3, \"restart\": \"10min\"}`, [below](#a-choice-of-gpus)")      \
    FLAG(PUE, "pue", REAL, 1, 10, NO_WORDS, DEPENDS, "pue", 0, "X", CHOOSE,                                            \
      "power usage effectiveness: the building's energy over that of its machines [1.1]",                              \
      "1.1: power usage effectiveness: the building's energy over that of its machines")                               \
    FLAG(KWH_PRICE, "kwh_price", REAL, 0, 1000, NO_WORDS, DEPENDS, "kwh-price", 0, "USD", CHOOSE,                      \
      "dollars per kWh, where power is paid separately", "none: the rent includes power; dollars per kWh")             \
    FLAG(CARBON, "carbon", REAL, 0, 100, NO_WORDS, DEPENDS, "carbon", 0, "KG", CHOOSE,                                 \
      "kg of CO2 per kWh [0.385]", "0.385: kg of CO2 per kWh")                                                         \
    FLAG(CHOOSE_GOAL, "objective", WORD, 0, 0, WORDS(choice), 0, "objective", 0, NULL, CHOOSE,                         \
      "what the choice minimises; knee: the corner of days (or answers) against dollars",                              \
      "`cost`, `time`, `energy`, `carbon`: what the choice minimises; `knee`: the corner of days against dollars")     \
    FLAG(TODAY, "today", TEXT, 0, 0, NO_WORDS, DEPENDS, "today", 0, "DATE", CHOOSE,                                    \
      "today's date, which the age of prices counts from [the clock's]",                                               \
      "the clock's date; `\"2026-11-16\"`: the date that the age of prices counts from")                               \
    PLAIN(DEADLINE_DAYS, "deadline_days", REAL, 0, 1e6, NO_WORDS, DEPENDS, "`deadline`, in days")                      \
    PLAIN(BUDGET_USD, "budget_usd", REAL, 0, 1e15, NO_WORDS, DEPENDS, "`budget` by another name")                      \
    PLAIN(OWN_PRICES, "prices", ANY, 0, 0, NO_WORDS, DEPENDS, "`price` by another name")                               \
    PLAIN(KWH_USD, "kwh_usd", REAL, 0, 1000, NO_WORDS, DEPENDS, "`kwh_price` by another name")                         \
    PLAIN(CARBON_KG, "carbon_kg_per_kwh", REAL, 0, 100, NO_WORDS, DEPENDS, "`carbon` by another name")

/* Inside `failures`. */
#define FT_FAILURES_KEYS(FLAG, PLAIN)                                                                                  \
    PLAIN(FAILURE_RATE, "rate", REAL, 0, 1000, NO_WORDS, DEPENDS, "4e-3: failures per node and day")                   \
    PLAIN(FAILURE_RESTART, "restart", ANY, 0, 0, NO_WORDS, DEPENDS, "`\"10min\"`: time until the job runs again")      \
    PLAIN(FAILURE_SAVE, "save", ANY, 0, 0, NO_WORDS, DEPENDS, "`\"20s\"`: time that saving a checkpoint stalls the "   \
                                                              "job")                                                   \
    PLAIN(FAILURE_INTERVAL, "interval", ANY, 0, 0, NO_WORDS, DEPENDS, "Daly's; a time: the interval between "          \
                                                                      "checkpoints")                                   \
    PLAIN(FAILURE_STORAGE, "storage_gbps", REAL, 1e-3, 1e6, NO_WORDS, DEPENDS,                                         \
      "unlimited; GB/s at which all nodes together write a checkpoint, and read it")
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the kernel time of the last second where the file says `auto`. */
#include "nvml_local.h"

#include <stdio.h>

static struct number figure(double value)
{
	return (struct number){ 0, 0, (uint64_t)(value + 0.5), value };
}

static double busy(int device, int instance)
{
	struct state *state = state_get();
	double share;

	state_sweep(state, 0);
	share = device_busy(state, device, instance, now_ns());
	return share;
}

struct number busy_percent(int device, int instance)
{
	struct number number = setting_auto(device, "utilization.gpu");

	if (number.automatic && mig_enabled(device))
		number = (struct number){ N_UNSUPPORTED, 0, 0, 0 };
	return number.automatic ? figure(busy(device, instance) * 100) : number;
}

struct number power_now(int device)
{
	struct number number = setting_auto(device, "power");
	double idle = setting_real(device, "power.idle", 70000);

	return number.automatic ? figure(idle + busy(device, -1) *
					 (setting_real(device, "power.limit", 700000) - idle)) : number;
}

struct number energy_now(int device)
{
	struct number number = setting_auto(device, "energy"), power;
	struct state *state = state_get();
	struct card *card = &state->cards[device];
	uint64_t now = now_ns(), from, was;

	if (!number.automatic)
		return number;
	power = power_now(device);
	was = __atomic_load_n(&card->energy_at, __ATOMIC_ACQUIRE);
	from = was ? was : state->born_at;
	/* Whoever moves the mark on adds what was used up to it; below a millijoule it stays. */
	if (!power.code && now > from && power.real * (double)(now - from) >= 1e9 &&
	    __atomic_compare_exchange_n(&card->energy_at, &was, now, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		__atomic_fetch_add(&card->energy_mj, (uint64_t)(power.real * (double)(now - from) / 1e9),
				   __ATOMIC_ACQ_REL);
	number = figure((double)__atomic_load_n(&card->energy_mj, __ATOMIC_ACQUIRE));
	return number;
}

struct number temperature_now(int device)
{
	struct number number = setting_auto(device, "temperature");

	return number.automatic ? figure(35 + 40 * busy(device, -1)) : number;
}

struct number clock_now(int device, int type)
{
	static const char *const KEYS[] = { "clock.graphics", "clock.sm", "clock.memory", "clock.video" };
	static const double IDLE[] = { 345, 345, 2619, 765 }, MOST[] = { 1980, 1980, 2619, 1545 };
	struct number number = setting_auto(device, KEYS[type]);
	char key[32];

	if (!number.automatic)
		return number;
	snprintf(key, sizeof(key), "%s.max", KEYS[type]);
	return figure(busy(device, -1) > 0 ? setting_real(device, key, MOST[type]) : IDLE[type]);
}

uint64_t throttle_now(int device)
{
	struct number number = setting_auto(device, "throttle.reasons");

	return number.automatic ? (uint64_t)(busy(device, -1) > 0 ? 0 : 1) : number.whole;
}

/*
 * The part of FMI 3.0 that this model has nothing of: types of variables other than Float64 and Int32, clocks, derivatives in a
 * direction, scheduled execution. Importers look every function up, so every function is here and says so.
 */
#include "armdyn_fmu.h"

static fmi3Status none_of(fmi3Instance instance, size_t n)
{
    return n == 0 ? fmi3OK : armdyn_refuse(instance, "all variables of this model are of type Float64 or Int32");
}

#define NO_VARIABLES(Type, c_type)                                                                                     \
    fmi3Status fmi3Get##Type(fmi3Instance instance, const fmi3ValueReference references[], size_t n, c_type values[],  \
                             size_t n_values)                                                                          \
    {                                                                                                                  \
        (void)references, (void)values, (void)n_values;                                                                \
        return none_of(instance, n);                                                                                   \
    }                                                                                                                  \
    fmi3Status fmi3Set##Type(fmi3Instance instance, const fmi3ValueReference references[], size_t n,                   \
                             const c_type values[], size_t n_values)                                                   \
    {                                                                                                                  \
        (void)references, (void)values, (void)n_values;                                                                \
        return none_of(instance, n);                                                                                   \
    }

NO_VARIABLES(Float32, fmi3Float32)
NO_VARIABLES(Int8, fmi3Int8)
NO_VARIABLES(UInt8, fmi3UInt8)
NO_VARIABLES(Int16, fmi3Int16)
NO_VARIABLES(UInt16, fmi3UInt16)
NO_VARIABLES(UInt32, fmi3UInt32)
NO_VARIABLES(Int64, fmi3Int64)
NO_VARIABLES(UInt64, fmi3UInt64)
NO_VARIABLES(Boolean, fmi3Boolean)
NO_VARIABLES(String, fmi3String)

fmi3Status fmi3GetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t n, size_t sizes[],
                         fmi3Binary values[], size_t n_values)
{
    (void)references, (void)sizes, (void)values, (void)n_values;
    return none_of(instance, n);
}

fmi3Status fmi3SetBinary(fmi3Instance instance, const fmi3ValueReference references[], size_t n, const size_t sizes[],
                         const fmi3Binary values[], size_t n_values)
{
    (void)references, (void)sizes, (void)values, (void)n_values;
    return none_of(instance, n);
}

fmi3Status fmi3GetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t n, fmi3Clock values[])
{
    (void)references, (void)values;
    return none_of(instance, n);
}

fmi3Status fmi3SetClock(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                        const fmi3Clock values[])
{
    (void)references, (void)values;
    return none_of(instance, n);
}

fmi3Status fmi3GetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                  fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[])
{
    (void)references, (void)intervals, (void)qualifiers;
    return none_of(instance, n);
}

fmi3Status fmi3GetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                   fmi3UInt64 counters[], fmi3UInt64 resolutions[],
                                   fmi3IntervalQualifier qualifiers[])
{
    (void)references, (void)counters, (void)resolutions, (void)qualifiers;
    return none_of(instance, n);
}

fmi3Status fmi3GetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                               fmi3Float64 shifts[])
{
    (void)references, (void)shifts;
    return none_of(instance, n);
}

fmi3Status fmi3GetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                fmi3UInt64 counters[], fmi3UInt64 resolutions[])
{
    (void)references, (void)counters, (void)resolutions;
    return none_of(instance, n);
}

fmi3Status fmi3SetIntervalDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                  const fmi3Float64 intervals[])
{
    (void)references, (void)intervals;
    return none_of(instance, n);
}

fmi3Status fmi3SetIntervalFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                   const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
{
    (void)references, (void)counters, (void)resolutions;
    return none_of(instance, n);
}

fmi3Status fmi3SetShiftDecimal(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                               const fmi3Float64 shifts[])
{
    (void)references, (void)shifts;
    return none_of(instance, n);
}

fmi3Status fmi3SetShiftFraction(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
{
    (void)references, (void)counters, (void)resolutions;
    return none_of(instance, n);
}

fmi3Status fmi3GetNumberOfVariableDependencies(fmi3Instance instance, fmi3ValueReference reference, size_t *n)
{
    (void)reference, (void)n;
    return armdyn_refuse(instance, "the dependencies are in modelDescription.xml and do not change");
}

fmi3Status fmi3GetVariableDependencies(fmi3Instance instance, fmi3ValueReference dependent, size_t of_dependent[],
                                       fmi3ValueReference independents[], size_t of_independents[],
                                       fmi3DependencyKind kinds[], size_t n)
{
    (void)dependent, (void)of_dependent, (void)independents, (void)of_independents, (void)kinds, (void)n;
    return armdyn_refuse(instance, "the dependencies are in modelDescription.xml and do not change");
}

fmi3Status fmi3GetDirectionalDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t n_unknowns,
                                        const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[],
                                        size_t n_seed, fmi3Float64 sensitivity[], size_t n_sensitivity)
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)n_seed;
    (void)sensitivity, (void)n_sensitivity;
    return armdyn_refuse(instance, "this model provides no directional derivatives");
}

fmi3Status fmi3GetAdjointDerivative(fmi3Instance instance, const fmi3ValueReference unknowns[], size_t n_unknowns,
                                    const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[],
                                    size_t n_seed, fmi3Float64 sensitivity[], size_t n_sensitivity)
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)seed, (void)n_seed;
    (void)sensitivity, (void)n_sensitivity;
    return armdyn_refuse(instance, "this model provides no adjoint derivatives");
}

fmi3Status fmi3EnterConfigurationMode(fmi3Instance instance)
{
    return armdyn_refuse(instance, "this model has no structural parameters");
}

fmi3Status fmi3ExitConfigurationMode(fmi3Instance instance)
{
    return armdyn_refuse(instance, "this model has no structural parameters");
}

fmi3Status fmi3ActivateModelPartition(fmi3Instance instance, fmi3ValueReference clock, fmi3Float64 time)
{
    (void)clock, (void)time;
    return armdyn_refuse(instance, "this model has no scheduled execution");
}

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources,
                                               fmi3Boolean visible, fmi3Boolean logging,
                                               fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                               fmi3ClockUpdateCallback update, fmi3LockPreemptionCallback lock,
                                               fmi3UnlockPreemptionCallback unlock)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)update, (void)lock, (void)unlock;
    if (log != NULL) log(environment, fmi3Error, "logStatusError", "this model has no scheduled execution");
    return NULL;
}

fmi3Status fmi3EnterStepMode(fmi3Instance instance)
{
    return armdyn_refuse(instance, "this model has no event mode in co-simulation, so it never leaves step mode");
}

fmi3Status fmi3GetOutputDerivatives(fmi3Instance instance, const fmi3ValueReference references[], size_t n,
                                    const fmi3Int32 orders[], fmi3Float64 values[], size_t n_values)
{
    (void)references, (void)orders, (void)values, (void)n_values;
    return n == 0 ? fmi3OK : armdyn_refuse(instance, "this model provides no derivatives of its outputs in steps");
}

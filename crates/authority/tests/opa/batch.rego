# Decides a list of inputs.
package batch

verdicts := [verdict(asked) | some asked in input]

verdict(asked) if data.tollgate.allow with input as asked

else := false
